-- reserve_id: id c8, ttr ('' = the job's own). Leases a waiting or dead job, due or not, paused or
-- not. Answers: result B (0 done, 2 missing, 4 conflict, 5 unknown priority), state B before,
-- priority I4; if done, the job as in reserve's answer.

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
    local front, back, score, tail = lease_terms(found.record, found.p and write_progress(found.p),
        found.where == 'lapsed', priority, tonumber(ARGV[at + 1]))
    local fence = next_fence()
    if found.where == 'dead' then
        call('ZREM', D, found.id)
    end
    call('ZADD', Z[priority], score, found.id)
    score = tonumber(score)
    if score < 2 * ZONE then
        note_deadline(found.id, found.head.span, score - ZONE)
    end
    call('HSET', F, found.id, pack('>I8c0I4c0', fence, front, found.head.bytes, back))
    add_record(found.id, found.record)
    count(RESERVES, 1)
    return pack('>BBI4c8I2I2I8', DONE, state, priority, found.id, 1, 0, fence) .. tail
        .. pack('>I2I2I6', 1, 0, found.at), true
end
