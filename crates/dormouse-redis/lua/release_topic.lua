-- release_topic: most jobs. Gives leased jobs back unspent, whoever has them, those first whose
-- lease ends first, at most BATCH_JOBS_MAX per call.
-- Answers: count I4, more B (1 = another call will give back more).

verbs.release_topic = function(at)
    local most = tonumber(ARGV[at])
    local lanes = most > 0 and lanes_of(LEASED, PRIORITIES) or {}
    local list = merged(lanes, 0, '', min(most, BATCH_JOBS_MAX))
    for _, job in ipairs(list) do
        -- A job that was reserved has a progress.
        local p = read_progress(call('HGET', F, job.id))
        p.releases = p.releases + 1
        p.attempts = max(p.attempts - 1, 0)
        p.flags = without(without(p.flags, HELD), LAST)
        groups.leave(p.group, job.id, job.lane.priority)
        call('ZADD', Z[job.lane.priority], now(), job.id)
        call('HSET', F, job.id, write_progress(p))
        note_rest(job.id, p)
    end
    if #list > 0 then
        count(RELEASES, #list)
        wake(now())
    end
    local more = #list == BATCH_JOBS_MAX and #list < most
    return pack('>I4B', #list, more and 1 or 0), #list > 0
end
