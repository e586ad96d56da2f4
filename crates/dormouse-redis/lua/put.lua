-- put: limits ('' or jobs_max I8, bytes_max I8), then per job: meta, key, record without put_at.
-- meta: clock B (0 delay, 1 at), delay or at I6, priority I4, on_conflict B.
-- Answers in runs of jobs that came to the same, with ids one after the other: how many I2, outcome B,
-- state B, id c8 of the first, due I6. Here every job is one of its own.

-- Whether Redis is at its limit of memory. Asked by a write that does nothing, before the script's
-- first one that does: later it would not be refused any more.
local function out_of_memory()
    local reply = pcall_redis('ZADD', D, 'XX', 0, '')
    if type(reply) == 'table' and reply.err then
        -- From now on everything is let through, which is right for what takes jobs away.
        call('HDEL', S, '')
        return true
    end
    return false
end

-- Who has this key: nil, or what `locate` found, or a hold.
local function taker(key)
    local id = call('HGET', K, key)
    if not id then
        return nil
    end
    local found = locate(id)
    if found then
        return found
    end
    local until_ms = tonumber(call('ZSCORE', H, key) or nil)
    if until_ms and until_ms > now() then
        return { where = 'held', id = id, at = until_ms }
    end
    return nil
end

-- What a put on a taken key comes to: nil = it creates a job, else outcome, state, id and due of
-- the answer, with outcome `REPLACED` still to be done.
local function conflict(on_conflict, due, found)
    if found.where == 'held' then
        if on_conflict == REPLACE then
            return nil
        end
        return on_conflict == REJECT and HELD_REFUSED or HELD_DUPLICATE, NO_STATE
    end
    local seen = state_of(found)
    if on_conflict == REJECT then
        return REFUSED, seen
    elseif on_conflict == KEEP then
        return DUPLICATE, seen
    elseif seen == LEASED then
        return nil
    elseif on_conflict == REPLACE or seen == DEAD or on_conflict == EARLIEST and due < found.at
        or on_conflict == LATEST and due > found.at then
        return REPLACED, seen
    end
    return DUPLICATE, seen
end

verbs.put = function(at, arguments)
    local jobs_max, bytes_max
    if ARGV[at] ~= '' then
        jobs_max, bytes_max = unpack_struct('>I8I8', ARGV[at])
    end
    local memory -- nil = not asked yet
    if jobs_max and (ARGV[9] ~= '' or ARGV[10] ~= '') then
        -- The dead that the settings do not keep take no room.
        memory = not out_of_memory()
        if memory then
            sweep()
        end
    end
    local answers, created, placed = {}, {}, {}
    local n, jobs = header[LAST_NUMBER], jobs_max and call('HLEN', J)
    local stamp = pack('>I6', now())

    -- Puts without a key are gathered and written by few commands.
    local function flush()
        if #created > 0 then
            local reply = pcall_redis('HSET', J, unpack(created))
            if type(reply) == 'table' and reply.err then
                call('HDEL', S, '')
                memory = false
            else
                for priority, members in pairs(placed) do
                    call('ZADD', Z[priority], unpack(members))
                end
            end
            created, placed = {}, {}
        end
        return memory ~= false
    end

    local index = 0
    for i = at + 1, at + arguments - 1, 3 do
        index = index + 1
        local clock, due, priority, on_conflict = unpack_struct('>BI6I4B', ARGV[i])
        local key, record = ARGV[i + 1], stamp .. ARGV[i + 2]
        local bytes = unpack_struct('>I4', record, 7)
        if clock ~= CLOCK_AT then
            due = after(due)
        end
        local found, outcome, seen
        if key ~= '' then
            flush()
            if memory == nil then
                memory = not out_of_memory()
            end
            found = taker(key)
            if found then
                outcome, seen = conflict(on_conflict, due, found)
            end
        end
        if outcome and outcome ~= REPLACED then
            answers[index] = pack('>I2BBc8I6', 1, outcome, seen, found.id, found.at)
        elseif memory == false then
            answers[index] = pack('>I2BBc8I6', 1, NO_MEMORY, NO_STATE, SHARD .. '\0\0\0\0\0', 0)
        else
            local left = outcome and found.head.bytes or 0
            local total = header[BYTES]
            if jobs_max and not outcome and jobs + 1 > max(jobs_max, jobs) then
                answers[index] = pack('>I2BBc8I6', 1, JOBS_FULL, NO_STATE, SHARD .. '\0\0\0\0\0', jobs)
            elseif bytes_max and total + bytes - left > max(bytes_max, total) then
                answers[index] = pack('>I2BBc8I6', 1, BYTES_FULL, NO_STATE, SHARD .. '\0\0\0\0\0', total)
            else
                local id
                if outcome then
                    id = found.id
                    if found.where == 'lapsed' then
                        count(EXPIRIES, 1)
                    end
                    if found.where == 'dead' then
                        call('ZREM', D, id)
                    else
                        call('ZREM', Z[found.priority], id)
                    end
                    call('HSET', J, id, record)
                    call('ZADD', Z[priority], due, id)
                    if found.p then
                        -- It starts afresh, but a token of its old life must never be good again.
                        local p = fresh_progress(read_head(record))
                        p.fence, p.priority = found.p.fence, priority
                        call('HSET', F, id, write_progress(p))
                    end
                else
                    n = n + 1
                    id = SHARD .. pack('>I5', n)
                    created[#created + 1] = id
                    created[#created + 1] = record
                    local members = placed[priority] or {}
                    placed[priority] = members
                    members[#members + 1] = due
                    members[#members + 1] = id
                    if jobs then
                        jobs = jobs + 1
                    end
                    if key ~= '' then
                        if found and found.where == 'leased' then
                            found.p.flags = with(found.p.flags, KEY_LOST)
                            call('HSET', F, found.id, write_progress(found.p))
                        end
                        call('ZREM', H, key)
                        call('HSET', K, key, id)
                        flush()
                    end
                end
                count(PUTS, 1)
                count(BYTES, bytes - left)
                wake(due)
                answers[index] = pack('>I2BBc8I6', 1, outcome or CREATED, due <= now() and READY or DELAYED, id, due)
            end
        end
    end
    if not flush() and memory == false and #answers > 0 then
        -- No memory for the jobs gathered: none of them is there.
        for i = 1, index do
            if string.byte(answers[i], 3) == CREATED then
                local bytes = unpack_struct('>I4', ARGV[at + i * 3])
                count(PUTS, -1)
                count(BYTES, -bytes)
                answers[i] = pack('>I2BBc8I6', 1, NO_MEMORY, NO_STATE, SHARD .. '\0\0\0\0\0', 0)
            end
        end
    else
        set(LAST_NUMBER, n)
    end
    return concat(answers), true
end
