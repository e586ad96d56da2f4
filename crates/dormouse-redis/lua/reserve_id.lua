-- reserve_id: id c8, ttr ('' = the job's own). Leases a waiting or dead job, due or not, paused or
-- not. Answers: result B (0 done, 2 missing, 4 conflict, 5 unknown priority, 7 held by a limit),
-- state B before, priority I4; if done, the job as in reserve's answer; if held: the limit B, how
-- many it has leased I8, in how many ms it is open again I6 (0 = when a lease ends), the job's
-- group I2 + bytes.

verbs.reserve_id = function(at)
    local found, done = find_target('i' .. ARGV[at])
    if not found then
        return pack('>BBI4', GONE, done and ACKED or NO_STATE, 0), false
    end
    local state, priority = state_of(found), found.priority
    if found.where == 'leased' then
        return pack('>BBI4', CONFLICT, state, priority), false
    elseif not Z[priority] then
        return pack('>BBI4', UNKNOWN_PRIORITY, state, priority), false
    end
    local limit, leased, wait, group = nil, nil, nil, found.head.group
    if flow then
        limit, leased, wait = flow.held()
    end
    if not limit then
        limit, leased, wait = groups.held(group)
    end
    if limit then
        return pack('>BBI4BI8I6', HELD_BACK, state, priority, limit, leased, wait)
            .. (group or NO_GROUP), false
    end
    local front, back, score, tail = lease_terms(found.record, found.p and write_progress(found.p),
        found.where == 'lapsed', priority, tonumber(ARGV[at + 1]))
    local fence = next_fence()
    groups.leave(group, found.id, priority)
    if found.where == 'dead' then
        call('ZREM', D, found.id)
    end
    call('ZADD', Z[priority], score, found.id)
    score = tonumber(score)
    if score < 2 * ZONE then
        note_deadline(found.id, found.head.span, score - ZONE)
    end
    if not found.p then
        back = back .. (group or '')
    end
    if group then
        groups.lease(group, found.id, score % ZONE)
        groups.spend(group, 1)
    end
    call('HSET', F, found.id, pack('>I8c0I4c0', fence, front, found.head.bytes, back))
    add_record(found.id, found.record)
    count(RESERVES, 1)
    if flow then
        flow.spend(1)
    end
    return pack('>BBI4c8I2I2I8', DONE, state, priority, found.id, 1, 0, fence) .. tail
        .. pack('>I2I2I6', 1, 0, found.at), true
end
