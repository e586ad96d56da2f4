-- kick: most jobs. Makes the earliest delayed jobs of all priorities ready, at most BATCH_JOBS_MAX
-- per call.
-- Answers: count I4, more B (1 = another call will kick more).

-- Jobs that are read together. Records may be large: so many more than allowed may be read.
local KICK_STEP = 4

verbs.kick = function(at)
    local most = tonumber(ARGV[at])
    local lanes = most > 0 and lanes_of(DELAYED, PRIORITIES) or {}
    local list = merged(lanes, 0, '', min(most, BATCH_JOBS_MAX))
    local placed, written, kicked, read, score = {}, {}, 0, 0, format('%d', now())
    while kicked < #list and read <= RECORD_BYTES_MAX do
        local ids, fresh = {}, {}
        for i = 1, min(KICK_STEP, #list - kicked) do
            ids[i] = list[kicked + i].id
        end
        local progress = call('HMGET', F, unpack(ids))
        for i, id in ipairs(ids) do
            fresh[#fresh + 1] = not progress[i] and id or nil
        end
        local records, met = #fresh > 0 and call('HMGET', J, unpack(fresh)) or {}, 0
        for i, id in ipairs(ids) do
            local p = progress[i] and read_progress(progress[i])
            if not p then
                met = met + 1
                read = read + #records[met]
                p = fresh_progress(read_head(records[met]))
            end
            p.kicks = p.kicks + 1
            note_rest(id, p)
            written[#written + 1] = id
            written[#written + 1] = write_progress(p)
            local priority = list[kicked + i].lane.priority
            groups.leave(p.group, id, priority)
            local members = placed[priority] or {}
            placed[priority] = members
            members[#members + 1] = score
            members[#members + 1] = id
        end
        kicked = kicked + #ids
    end
    if kicked > 0 then
        call('HSET', F, unpack(written))
        for priority, members in pairs(placed) do
            call('ZADD', Z[priority], unpack(members))
        end
        wake(now())
    end
    local more = kicked < #list or kicked == BATCH_JOBS_MAX and kicked < most
    return pack('>I4B', kicked, more and 1 or 0), kicked > 0
end
