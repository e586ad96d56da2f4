-- put_plain: the fast path of put, for jobs without keys and topics without limits. Nothing is
-- looked up, so all jobs are written together or, when Redis is out of memory, none.
-- Arguments: bytes of all jobs; runs of jobs with the same due time (count I2, then clock B, delay
-- or at I6, priority I4 as in put's meta) in one argument; then the records without put_at.
-- Answers as put. Where groups have limits it needs the slow path.

local RUN, RUN_BYTES = '>I2BI6I4', 13

-- Adds jobs to their zsets, consecutive runs of one priority by one command. `list` has the ids at
-- even indices; the records between them are overwritten by scores.
local function add_to_zsets(runs, dues, list)
    local last, from = 0, 1
    for r, due in ipairs(dues) do
        local jobs, _, _, priority = struct.unpack(RUN, runs, r * RUN_BYTES - RUN_BYTES + 1)
        local score = string.format('%d', due)
        for i = last + 1, last + jobs do
            list[i * 2 - 1] = score
        end
        last = last + jobs
        local next_priority
        if dues[r + 1] then
            _, _, _, next_priority = struct.unpack(RUN, runs, r * RUN_BYTES + 1)
        end
        if priority ~= next_priority then
            redis.call('ZADD', Z[priority], unpack(list, from, last * 2))
            from = last * 2 + 1
        end
    end
end

verbs.put_plain = function(at, arguments)
    local pack, shard, runs = struct.pack, SHARD, ARGV[at + 1]
    if not slow and flow and flow.has_groups then
        return nil
    end
    local is_long = slow and slow.groups.is_long_line()
    if slow and slow.out_of_memory() then
        return pack('>I2BBc3I5I6', arguments - 2, NO_MEMORY, NO_STATE, shard, 0, 0), true
    end
    local n, first, stamp = header[LAST_NUMBER], NEVER, pack('>I6', now())
    local list, dues, answers, i = { '' }, {}, {}, 0 -- ids and records from list[2] on
    for from = 1, #runs, RUN_BYTES do
        local jobs, clock, due = struct.unpack(RUN, runs, from)
        if clock == CLOCK_DELAY then
            due = after(due)
        end
        first = due < first and due or first
        dues[#dues + 1] = due
        local state = due <= now() and READY or DELAYED
        answers[#answers + 1] = pack('>I2BBc3I5I6', jobs, CREATED, state, shard, n + 1, due)
        for _ = 1, jobs do
            n, i = n + 1, i + 1
            list[i * 2], list[i * 2 + 1] = pack('>c3I5', shard, n), stamp .. ARGV[at + 1 + i]
        end
    end
    local reply = redis.pcall('HSET', KEYS[2], unpack(list, 2))
    if type(reply) == 'table' and reply.err then
        -- A write that is allowed: Redis accepts all later ones, and verbs that remove jobs must
        -- work.
        redis.call('HDEL', KEYS[1], '')
        return pack('>I2BBc3I5I6', arguments - 2, NO_MEMORY, NO_STATE, shard, 0, 0), true
    end
    local created = is_long and { unpack(list, 2) }
    add_to_zsets(runs, dues, list)
    if is_long then
        slow.park_new(created)
    end
    header[PUTS] = header[PUTS] + i
    header[BYTES] = header[BYTES] + ARGV[at]
    header[LAST_NUMBER] = n
    wake(first)
    return table.concat(answers), true
end
