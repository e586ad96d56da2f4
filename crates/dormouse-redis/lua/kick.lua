-- kick: most jobs. Makes the earliest delayed jobs of all priorities ready, at most BATCH_JOBS_MAX
-- per call.
-- Answers: count I4, more B (1 = another call will kick more).

verbs.kick = function(at)
    local most = tonumber(ARGV[at])
    local lanes = most > 0 and lanes_of(DELAYED, PRIORITIES) or {}
    local list = merged(lanes, 0, '', min(most, BATCH_JOBS_MAX))
    local placed, written, kicked, read = {}, {}, 0, 0
    for _, job in ipairs(list) do
        if read > RECORD_BYTES_MAX then
            break
        end
        local id, priority = job.id, job.lane.priority
        local progress = call('HGET', F, id)
        local p = progress and read_progress(progress)
        if not p then
            local record = call('HGET', J, id)
            read = read + #record
            p = fresh_progress(read_head(record))
        end
        p.kicks = p.kicks + 1
        written[#written + 1] = id
        written[#written + 1] = write_progress(p)
        local members = placed[priority] or {}
        placed[priority] = members
        members[#members + 1] = now()
        members[#members + 1] = id
        kicked = kicked + 1
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
