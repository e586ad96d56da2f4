-- get: most bytes of jobs, then a target per item.
-- Answers per item: B (0 missing, 1 found, 2 does not fit). Found: state B, at I6 (when it is due,
-- died, was acked, or its lease expires), lapsed B, id c8, progress I2 + bytes (none = never
-- reserved), and a record. Does not fit: id c8.

-- Answers a job for get, peek and list.
local function view(id, record, progress, state, at, lapsed)
    add_record(id, record)
    return pack('>BBI6Bc8I2', FOUND, state, at, lapsed and 1 or 0, id, #progress) .. progress
end

verbs.get = function(at, arguments)
    local room, answers = tonumber(ARGV[at]), {}
    for i = at + 1, at + arguments - 1 do
        local found, done = find_target(ARGV[i])
        found = found or done
        if not found then
            answers[#answers + 1] = pack('>B', MISSING)
        elseif found.head.bytes > room then
            answers[#answers + 1] = pack('>Bc8', NO_ROOM, found.id)
        else
            room = room - found.head.bytes
            answers[#answers + 1] = view(found.id, found.record,
                found.p and write_progress(found.p) or '', state_of(found), found.at,
                found.where == 'lapsed')
        end
    end
    return concat(answers), false
end
