-- put: limits ('' or jobs_max I8, bytes_max I8), then per job: meta, key, record without put_at.
-- meta: clock B (0 delay, 1 at), delay or at I6, priority I4, on_conflict B; and if the put has a
-- marker: how long that is held I6, its name.
-- Answers runs of jobs with the same result and consecutive ids: count I2, result B, state B, id c8
-- of the first, due I6. This file answers runs of one job; put_fast.lua longer ones.

local META_BYTES, MARKER_AT = 12, 19

-- The name of the marker, nil = none, and how long it is held.
local function marker_of(meta)
    if #meta > META_BYTES then
        return sub(meta, MARKER_AT), (unpack_struct('>I6', meta, META_BYTES + 1))
    end
    return nil
end

-- The owner of a key: nil, a located job, a job that is done, or a hold, perhaps with the done job
-- that it is of.
local function key_owner(key)
    local id = call('HGET', K, key)
    if not id then
        return nil
    end
    local found = locate(id)
    if found then
        return found
    end
    local until_ms, done = held_until(key), find_done(id)
    if until_ms then
        return { where = 'held', id = id, at = until_ms, done = done }
    end
    return done
end

-- The result of a put whose key is taken, and the state of the owner; nil = the put creates a job.
-- The caller carries out REPLACED.
local function resolve_conflict(on_conflict, due, found)
    if found.where == 'held' then
        if on_conflict == REPLACE then
            return nil
        end
        return on_conflict == REJECT and HELD_REFUSED or HELD_DUPLICATE,
            found.done and ACKED or NO_STATE
    elseif found.where == 'done' then
        return nil
    end
    local state = state_of(found)
    if state == DEAD then
        if on_conflict == REPLACE then
            return REPLACED, state
        end
        return nil -- a dead job never stands in the way of new work
    elseif on_conflict == REJECT then
        return REFUSED, state
    elseif on_conflict == KEEP then
        return DUPLICATE, state
    elseif state == LEASED then
        return nil
    elseif on_conflict == REPLACE or on_conflict == EARLIEST and due < found.at
        or on_conflict == LATEST and due > found.at then
        return REPLACED, state
    end
    return DUPLICATE, state
end

-- The result of a put that came to this job before, and the job.
local function repeated(id, marker)
    local found = id ~= NO_JOB and locate(id)
    if found then
        return DUPLICATE, state_of(found), found
    end
    return HELD_DUPLICATE, NO_STATE, { id = id, at = held_until(marker) }
end

-- The answer for a job that was not created; `amount` is what the topic has of the limited thing.
local function failure(outcome, amount)
    return pack('>I2BBc8I6', 1, outcome, NO_STATE, SHARD .. '\0\0\0\0\0', amount)
end

-- `limits`: instead of those in the arguments.
verbs.put = function(at, arguments, limits)
    local jobs_max, bytes_max
    limits = limits or ARGV[at]
    if limits ~= '' then
        jobs_max, bytes_max = unpack_struct('>I8I8', limits)
    end
    local memory -- whether there is memory; nil = not tested yet
    if memory_is_out ~= nil then
        memory = not memory_is_out
    end
    if jobs_max and (ARGV[9] ~= '' or ARGV[10] ~= '') then
        -- Dead jobs that the settings do not keep do not count for the limits.
        memory = not out_of_memory()
        if memory then
            sweep()
        end
    end
    local answers, created, placed, deadlines = {}, {}, {}, {}
    local n, jobs = header[LAST_NUMBER], jobs_max and count_jobs()
    local stamp, is_long = pack('>I6', now()), groups.is_long_line()

    -- New jobs are collected and written by few commands.
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
                if is_long then
                    slow.park_new(created)
                end
                for id, ends in pairs(deadlines) do
                    note_deadline(id, ends[1], ends[2])
                end
            end
            created, placed, deadlines = {}, {}, {}
        end
        return memory ~= false
    end

    local index = 0
    for i = at + 1, at + arguments - 1, 3 do
        index = index + 1
        local clock, due, priority, on_conflict = unpack_struct('>BI6I4B', ARGV[i])
        local key, record = ARGV[i + 1], stamp .. ARGV[i + 2]
        local bytes, flags = unpack_struct('>I4I2', record, RECORD_BYTES_AT)
        local span = band(flags, HAS_SPAN) ~= 0 and read_head(record).span or 0
        if clock ~= CLOCK_AT then
            due = after(due)
        end
        local found, outcome, state
        local marker, marker_ttl = marker_of(ARGV[i])
        local before = marker and marked(marker)
        local id -- of the job that the put comes to
        if key ~= '' or marker then
            flush()
            if memory == nil then
                memory = not out_of_memory()
            end
            if before then
                outcome, state, found = repeated(before, marker)
            elseif key ~= '' then
                found = key_owner(key)
                if found then
                    outcome, state = resolve_conflict(on_conflict, due, found)
                end
            end
        end
        if outcome and outcome ~= REPLACED then
            answers[index] = pack('>I2BBc8I6', 1, outcome, state, found.id, found.at)
            if outcome == DUPLICATE or outcome == HELD_DUPLICATE then
                id = found.id
            end
        elseif memory == false then
            answers[index] = failure(NO_MEMORY, 0)
        else
            local left = outcome and found.head.bytes or 0
            local total = header[BYTES]
            if jobs_max and not outcome and jobs + 1 > max(jobs_max, jobs) then
                answers[index] = failure(JOBS_FULL, jobs)
            elseif bytes_max and total + bytes - left > max(bytes_max, total) then
                answers[index] = failure(BYTES_FULL, total)
            else
                if outcome then
                    id = found.id
                    if found.where == 'lapsed' then
                        count(EXPIRIES, 1)
                    end
                    if found.where == 'dead' then
                        call('ZREM', D, id)
                    else
                        groups.leave(found.head.group, id, found.priority)
                        call('ZREM', Z[found.priority], id)
                    end
                    call('HSET', J, id, record)
                    call('ZADD', Z[priority], due, id)
                    if found.head.span > 0 and span == 0 then
                        call('ZREM', E, id)
                    end
                    note_deadline(id, span, due)
                    if found.p then
                        -- It starts anew, but the fence must stay: old tokens must not become
                        -- valid.
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
                    if span > 0 then
                        deadlines[id] = { span, due }
                    end
                    if jobs then
                        jobs = jobs + 1
                    end
                    if key ~= '' then
                        local loser = found
                        if found and found.where == 'held' then
                            loser = found.done
                        end
                        if loser then
                            -- Leased, dead or done, it stays, without the key.
                            loser.p.flags = with(loser.p.flags, KEY_LOST)
                            call('HSET', F, loser.id, write_progress(loser.p))
                        end
                        call('ZREM', H, key)
                        call('HSET', K, key, id)
                        flush()
                    end
                end
                count(PUTS, 1)
                count(BYTES, bytes - left)
                wake(due)
                answers[index] = pack('>I2BBc8I6', 1, outcome or CREATED,
                    due <= now() and READY or DELAYED, id, due)
            end
        end
        if id and marker and not before and flush() then
            mark(marker, id, marker_ttl)
        end
    end
    if not flush() and memory == false and #answers > 0 then
        -- No memory for the collected jobs: none of them exists.
        for i = 1, index do
            if string.byte(answers[i], 3) == CREATED then
                local bytes = unpack_struct('>I4', ARGV[at + i * 3])
                count(PUTS, -1)
                count(BYTES, -bytes)
                answers[i] = failure(NO_MEMORY, 0)
            end
        end
    else
        set(LAST_NUMBER, n)
    end
    return concat(answers), true
end
