-- put_plain: put of jobs without keys to a topic without limits, most of all puts: nothing is to be
-- looked up, so all are written together or, when Redis is out of memory, none.
-- Arguments: bytes of all jobs, runs of jobs that are due together (how many I2, then clock B, delay or
-- at I6, priority I4 as in put's meta) in one argument, then the records without put_at. Answers as put.

verbs.put_plain = function(at, arguments)
    local pack, shard, runs = struct.pack, ARGV[8], ARGV[at + 1]
    local n, first, stamp = books[LAST_NUMBER], NEVER, pack('>I6', now())
    local created, placed, answers, i = {}, {}, {}, 0
    for from = 1, #runs, 13 do
        local jobs, clock, due, priority = struct.unpack('>I2BI6I4', runs, from)
        if clock == 0 then
            due = after(due)
        end
        first = due < first and due or first
        answers[#answers + 1] = pack('>I2BBc3I5I6', jobs, 0, due <= now() and 1 or 0, shard, n + 1, due)
        local score, members = string.format('%d', due), placed[priority] or {}
        placed[priority] = members
        local last = #members
        for _ = 1, jobs do
            n, i = n + 1, i + 1
            local id = pack('>c3I5', shard, n)
            created[i * 2 - 1], created[i * 2] = id, stamp .. ARGV[at + 1 + i]
            members[last + 1], members[last + 2] = score, id
            last = last + 2
        end
    end
    local reply = redis.pcall('HSET', KEYS[2], unpack(created))
    if type(reply) == 'table' and reply.err then
        -- From now on everything is let through, which is right for what takes jobs away.
        redis.call('HDEL', KEYS[1], '')
        return pack('>I2BBc3I5I6', arguments - 2, 6, 255, shard, 0, 0), true
    end
    for priority, members in pairs(placed) do
        redis.call('ZADD', Z[priority], unpack(members))
    end
    books[PUTS] = books[PUTS] + i
    books[BYTES] = books[BYTES] + ARGV[at]
    books[LAST_NUMBER] = n
    wake(first)
    return table.concat(answers), true
end
