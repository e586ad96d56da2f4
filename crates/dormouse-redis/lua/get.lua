-- get: most bytes of jobs, then a target per item.
-- Answers per item: B (0 missing, 1 found, 2 does not fit). Found: state B, at I6 (when it is due,
-- died, was acked, or its lease expires), lapsed B, id c8, progress I2 + bytes (none = never
-- reserved), held B (the limit that keeps a ready job from being taken, 0 = none), and a record.
-- Does not fit: id c8.

-- The limit that holds a ready job; 0 = none. Each is looked up once for all jobs of a verb: it
-- costs commands, and a page has many jobs.
local function held_by(record)
    local seen = flow.seen
    if not seen then
        seen = { topic = flow.held() or 0, groups = {} }
        flow.seen = seen
    end
    local group = seen.topic == 0 and group_of(record)
    if not group then
        return seen.topic
    end
    if not seen.groups[group] then
        seen.groups[group] = groups.held(group) or 0
    end
    return seen.groups[group]
end

-- Answers a job for get, peek and list.
local function view(id, record, progress, state, at, lapsed)
    add_record(id, record)
    local held = flow and state == READY and held_by(record) or 0
    return pack('>BBI6Bc8I2', FOUND, state, at, lapsed and 1 or 0, id, #progress) .. progress
        .. pack('>B', held)
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
