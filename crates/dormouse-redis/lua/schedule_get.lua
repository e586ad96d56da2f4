-- schedule_get: name. Answers: found B (0 missing, 1 found), fraction B (1 = part of the present ms
-- has passed); if found, the entry.

verbs.schedule_get = function(at)
    local name = ARGV[at]
    local value = call('HGET', N, name)
    now()
    if not value then
        return pack('>BB', MISSING, fraction), false
    end
    return pack('>BB', FOUND, fraction) .. schedule_entry(name, value, has_living_job(value)), false
end
