-- put_plain: put of jobs without keys to a topic without limits, most of all puts: nothing is to be
-- looked up, so all are written together or, when Redis is out of memory, none.
-- Arguments: bytes of all jobs, metas (each as that of put, without on_conflict) in one argument, then
-- the records without put_at. Answers as put.

verbs.put_plain = function(at, arguments)
    local metas, jobs = ARGV[at + 1], arguments - 2
    local n, stamp = tonumber(state.n or 0), pack('>I6', now())
    local created, placed, answers = {}, {}, {}
    local last, text, head, tail, members, first -- of the job before: many have the same meta
    local ids = SHARD .. sub(pack('>I5', n), 1, 4) -- all of an id but its last byte
    for i = 1, jobs do
        local meta = sub(metas, i * 11 - 10, i * 11)
        if meta ~= last then
            last = meta
            local clock, due, priority = unpack_struct('>BI6I4', meta)
            if clock == 0 then
                due = after(due)
            end
            -- Redis would write a number with 17 digits of fraction, which takes longer.
            text, tail = string.format('%.0f', due), pack('>I6', due)
            head = due <= now_ms and '\0\1' or '\0\0'
            first = first and min(first, due) or due
            members = placed[priority] or {}
            placed[priority] = members
        end
        n = n + 1
        if n % 256 == 0 then
            ids = SHARD .. sub(pack('>I5', n), 1, 4)
        end
        local id = ids .. string.char(n % 256)
        created[i * 2 - 1], created[i * 2] = id, stamp .. ARGV[at + 1 + i]
        members[#members + 1] = text
        members[#members + 1] = id
        answers[i * 3 - 2], answers[i * 3 - 1], answers[i * 3] = head, id, tail
    end
    local reply = pcall_redis('HSET', J, unpack(created))
    if type(reply) == 'table' and reply.err then
        -- From now on everything is let through, which is right for what takes jobs away.
        call('HDEL', S, '')
        return string.rep('\6\255' .. SHARD .. '\0\0\0\0\0\0\0\0\0\0\0', jobs), true
    end
    for priority, list in pairs(placed) do
        call('ZADD', Z[priority], unpack(list))
    end
    count(PUTS, jobs)
    count(BYTES, tonumber(ARGV[at]))
    wake(first)
    set('n', n)
    return concat(answers), true
end
