-- Functions on single jobs: their record and progress, where they are, their death and removal. The
-- fast paths do without this file, see script.rs.

local SWEEP = 64 -- most entries that one script expires besides its work

-- The number of a job in its partition.
local function number_of(id)
    return (unpack_struct('>I5', id, 4))
end

-- Whether one id is smaller. `<` on strings would depend on the locale of Redis.
local function is_before(a, b)
    local a_shard, a_number = unpack_struct('>I3I5', a)
    local b_shard, b_number = unpack_struct('>I3I5', b)
    if a_shard ~= b_shard then
        return a_shard < b_shard
    end
    return a_number < b_number
end

-- The head of a record: put_at I6, bytes I4, flags I2, then those that the flags name: attempts_max
-- I4, ttr I6, span I6 (expires_after), priority I4, key_ttl I6, group I2 + bytes, key I2 + bytes,
-- backoff I2 + bytes, schedule I2 + bytes and tick I6, missed I4. Only servers read the part after
-- it. `group` has its length before it, as everywhere.
local function read_head(record)
    local r = { attempts_max = ATTEMPTS_MAX_DEFAULT, ttr = TTR_MS_DEFAULT,
        priority = PRIORITY_DEFAULT, key_ttl = 0, span = 0 }
    r.put_at, r.bytes, r.flags = unpack_struct('>I6I4I2', record)
    local at, flags = RECORD_OPTIONS_AT, r.flags
    if band(flags, HAS_ATTEMPTS) ~= 0 then
        r.attempts_max = unpack_struct('>I4', record, at)
        at = at + 4
    end
    if band(flags, HAS_TTR) ~= 0 then
        r.ttr = unpack_struct('>I6', record, at)
        at = at + 6
    end
    if band(flags, HAS_SPAN) ~= 0 then
        r.span = unpack_struct('>I6', record, at)
        at = at + 6
    end
    if band(flags, HAS_PRIORITY) ~= 0 then
        r.priority = unpack_struct('>I4', record, at)
        at = at + 4
    end
    if band(flags, HAS_KEY_TTL) ~= 0 then
        r.key_ttl = unpack_struct('>I6', record, at)
        at = at + 6
    end
    if band(flags, HAS_GROUP) ~= 0 then
        local length = unpack_struct('>I2', record, at)
        r.group = sub(record, at, at + 1 + length)
        at = at + 2 + length
    end
    if band(flags, HAS_KEY) ~= 0 then
        local length = unpack_struct('>I2', record, at)
        r.key = sub(record, at + 2, at + 1 + length)
        at = at + 2 + length
    end
    if band(flags, HAS_BACKOFF) ~= 0 then
        local length = unpack_struct('>I2', record, at)
        r.backoff = sub(record, at + 2, at + 1 + length)
        at = at + 2 + length
    end
    if band(flags, HAS_TICK) ~= 0 then
        local length = unpack_struct('>I2', record, at)
        r.schedule = sub(record, at + 2, at + 1 + length)
    end
    return r
end

-- Progress: what has happened to a job since it was put. The group, if GROUPED says that there is
-- one, and the last error follow the numbers.
local function read_progress(text)
    local p = {}
    p.fence, p.attempts, p.priority, p.reserves, p.expiries, p.releases, p.kills, p.kicks, p.bytes,
        p.ttr, p.flags = unpack_struct(PROGRESS, text)
    local at = PROGRESS_BYTES + 1
    if band(p.flags, GROUPED) ~= 0 then
        p.group = sub(text, at, at + 1 + unpack_struct('>I2', text, at))
        at = at + #p.group
    end
    p.error = sub(text, at)
    return p
end
local function write_progress(p)
    return pack(PROGRESS, p.fence, p.attempts, p.priority, p.reserves, p.expiries, p.releases,
        p.kills, p.kicks, p.bytes, p.ttr, p.flags) .. (p.group or '') .. p.error
end
local function with(flags, flag)
    return band(flags, flag) ~= 0 and flags or flags + flag
end
local function without(flags, flag)
    return band(flags, flag) ~= 0 and flags - flag or flags
end

-- The progress of a job that has none yet.
local function fresh_progress(head)
    local flags = (head.key and KEYED or 0) + (head.schedule and TICKED or 0)
        + (head.span > 0 and SPANNED or 0) + (head.group and GROUPED or 0)
    return { fence = 0, attempts = 0, priority = head.priority, reserves = 0, expiries = 0,
        releases = 0, kills = 0, kicks = 0, bytes = head.bytes, ttr = head.ttr, flags = flags,
        group = head.group, error = '' }
end

-- The job of a tick has ended at this instant: its schedule is due, if it waits for a job. It may
-- wait for another one: then the server that meets it lets it wait on.
local function settle_tick(name, at)
    local score = tonumber(call('ZSCORE', T, name) or nil)
    if score and score >= ZONE and score < 2 * ZONE then
        call('ZADD', T, at, name)
        header[TICKS_DUE] = true
    end
end

-- The same, for a job whose record was not read.
local function settle_tick_of(id, at)
    local record = call('HGET', J, id)
    local name = record and read_head(record).schedule
    if name then
        settle_tick(name, at)
    end
end

-- A job with a deadline comes to rest, or is leased: it dies so long after `due`, but not before
-- now.
local came_late = {} -- set of ids: in this script they came to rest too late, and die after it
local function note_deadline(id, span, due)
    if span == 0 then
        return
    end
    local at = max(due + span, now())
    came_late[id] = at == now() or nil
    call('ZADD', E, at, id)
    if at < header[DEADLINE] then
        set(DEADLINE, at)
        header[TICKS_DUE] = true
    end
end

-- The same, for a job whose record was not read: whoever meets the entry finds out.
local function note_rest(id, p)
    if band(p.flags, SPANNED) ~= 0 then
        note_deadline(id, 1, now() - 1)
    end
end

-- Keeps a key taken.
local function hold_key(key, ttl)
    call('ZADD', H, after(ttl), key)
end

-- Until when a key stays taken after the ack, if it does.
local function held_until(key)
    local score = tonumber(call('ZSCORE', H, key) or nil)
    local at = score and score % ZONE
    return at and at > now() and at or nil
end

-- Removes the record, progress and key of a job that is in no zset any more.
local function erase(id, head, p)
    call('HDEL', J, id)
    if p then
        call('HDEL', F, id)
    end
    if head.key and not (p and band(p.flags, KEY_LOST) ~= 0) then
        if call('HGET', K, head.key) == id then
            call('HDEL', K, head.key)
        end
    end
end

-- The same, for a job that counts.
local function forget(id, head, p)
    erase(id, head, p)
    if head.span > 0 then
        call('ZREM', E, id)
    end
    if head.schedule then
        settle_tick(head.schedule, now())
    end
    count(BYTES, -head.bytes)
end

-- Removes at most `budget` of the oldest dead jobs that the settings do not keep; true = there may
-- be more.
local function trim_dead(budget)
    local ttl, most = tonumber(ARGV[9]), tonumber(ARGV[10])
    if not ttl and not most then
        return false
    end
    while budget > 0 do
        local oldest = call('ZRANGE', D, 0, 0, 'WITHSCORES')
        local id = oldest[1]
        if not id then
            return false
        end
        local over = most and call('ZCARD', D) > most
        if not over and not (ttl and tonumber(oldest[2]) + ttl <= now()) then
            return false
        end
        call('ZREM', D, id)
        local record, progress = call('HGET', J, id), call('HGET', F, id)
        if record then
            forget(id, read_head(record), progress and read_progress(progress))
        end
        budget = budget - 1
    end
    return true
end

-- Removes at most `budget` of the oldest done jobs whose time is over; true = there may be more.
local function trim_done(budget)
    local last = now() - (tonumber(ARGV[12]) or 0)
    local over = call('ZRANGE', O, '-inf', last, 'BYSCORE', 'LIMIT', 0, budget)
    if #over == 0 then
        return false
    end
    local progress, gone, read = call('HMGET', F, unpack(over)), {}, 0
    for i, id in ipairs(over) do
        local p = progress[i] and read_progress(progress[i])
        if p and band(p.flags, KEYED) ~= 0 and band(p.flags, KEY_LOST) == 0 then
            local record = call('HGET', J, id)
            read = read + #(record or '')
            local key = record and read_head(record).key
            -- A hold goes on without the job.
            if key and call('HGET', K, key) == id and not held_until(key) then
                call('HDEL', K, key)
            end
        end
        gone[i] = id
        if read > RECORD_BYTES_MAX then
            break
        end
    end
    call('ZREM', O, unpack(gone))
    call('HDEL', J, unpack(gone))
    call('HDEL', F, unpack(gone))
    return #gone < #over or #over == budget
end

-- Moves a job from the zset of this priority to the dead jobs, or to those whose letter is to be
-- sent: these are gone from the topic. `at` is when it died.
local function bury(id, p, priority, at)
    groups.leave(p.group, id, priority)
    call('ZREM', Z[priority], id)
    if ARGV[13] == '' then
        call('ZADD', D, at, id)
    else
        call('ZADD', L, at, id)
        count(BYTES, -p.bytes)
        header[TICKS_DUE] = true
    end
    if band(p.flags, SPANNED) ~= 0 then
        call('ZREM', E, id)
    end
    p.kills = p.kills + 1
    p.flags = without(without(p.flags, HELD), LAST)
    call('HSET', F, id, write_progress(p))
    count(KILLS, 1)
    if band(p.flags, TICKED) ~= 0 then
        settle_tick_of(id, at)
    end
    trim_dead(2)
end

-- The lease of a last attempt has expired: the job is dead since then.
local function bury_expired(id, p, priority, expired_at)
    p.expiries = p.expiries + 1
    p.error = 'lease expired'
    count(EXPIRIES, 1)
    bury(id, p, priority, expired_at)
end

-- Nobody took the job in time: it is dead since its deadline.
local function bury_late(id, p, priority, lapsed, deadline)
    if lapsed then
        p.expiries = p.expiries + 1
        count(EXPIRIES, 1)
    end
    p.error = 'expired'
    bury(id, p, priority, deadline)
end

local sweep

-- When a dead job died, or nil if the settings do not keep it: it may not have been removed yet.
local swept = false
local function died_at(id)
    if not swept and (ARGV[9] ~= '' or ARGV[10] ~= '') then
        -- Once is enough: the whole script runs at one instant.
        swept = not sweep()
    end
    return tonumber(call('ZSCORE', D, id) or nil)
end

-- Finds a job: nil, or a table of its id, record, head, p (progress, nil = none yet), priority, at
-- (instant of its score) and `where`: waiting, lapsed (its lease has expired), leased or dead. A
-- job that died unnoticed is buried. Parked jobs are found as others are.
local function locate(id)
    local record = call('HGET', J, id)
    if not record then
        return nil
    end
    local found = { id = id, record = record, head = read_head(record) }
    local progress = call('HGET', F, id)
    found.p = progress and read_progress(progress)
    found.priority = found.p and found.p.priority or found.head.priority
    local zset = Z[found.priority]
    local score = zset and tonumber(call('ZSCORE', zset, id) or nil)
    if not score then
        found.where, found.at = 'dead', died_at(id)
        return found.at and found or nil
    end
    local zone = floor(score / ZONE)
    found.at = score - zone * ZONE
    zone = zone > 2 and zone - 3 or zone -- it is parked
    if zone == 0 then
        found.where = 'waiting'
    elseif found.at > now() then
        found.where = 'leased'
    elseif zone == 1 then
        found.where = 'lapsed'
    else
        bury_expired(id, found.p, found.priority, found.at)
        found.where = 'dead'
    end
    local span, lapsed = found.head.span, found.where == 'lapsed'
    if span > 0 and (lapsed or zone == 0) and found.at + span <= now() and not came_late[id] then
        found.p = found.p or fresh_progress(found.head)
        -- A job that came too late has its entry at that time.
        found.at = max(found.at + span, tonumber(call('ZSCORE', E, id) or 0))
        bury_late(id, found.p, found.priority, lapsed, found.at)
        found.where = 'dead'
    end
    if found.where == 'dead' and not died_at(id) then
        return nil -- trimmed at once, or its letter is to be sent
    end
    return found
end

-- The done job of this id, or nil: id, record, head, p, at (when it was acked).
local function find_done(id)
    local at = ARGV[12] ~= '' and tonumber(call('ZSCORE', O, id) or nil)
    if not at or at + tonumber(ARGV[12]) <= now() then
        return nil
    end
    local record = call('HGET', J, id)
    return { id = id, record = record, head = read_head(record),
        p = read_progress(call('HGET', F, id)), at = at, where = 'done' }
end

-- Deadlines that are over: the job dies, or the entry was of an earlier place.
local function meet_deadlines(budget)
    local read, due = 0, call('ZRANGE', E, '-inf', now(), 'BYSCORE', 'LIMIT', 0, budget)
    for _, id in ipairs(due) do
        local found = locate(id)
        if not found or found.head.span == 0 or found.where == 'dead'
            or found.where == 'leased' and band(found.p.flags, LAST) ~= 0 then
            call('ZREM', E, id)
        else
            call('ZADD', E, found.at + found.head.span, id)
        end
        read = read + #(found and found.record or '')
        if read > RECORD_BYTES_MAX then
            break
        end
    end
    local first = call('ZRANGE', E, 0, 0, 'WITHSCORES')
    set(DEADLINE, tonumber(first[2] or NEVER))
end

-- Jobs that count for limits.
local function count_jobs()
    return call('HLEN', J) - (ARGV[12] ~= '' and call('ZCARD', O) or 0)
        - call('ZCARD', L)
end

-- The state that callers see.
local function state_of(found)
    if found.where == 'dead' then
        return DEAD
    elseif found.where == 'done' then
        return ACKED
    elseif found.where == 'leased' then
        return LEASED
    end
    return found.at <= now() and READY or DELAYED
end

-- Whether the token with this fence is valid for the located job.
local function holds_lease(found, fence)
    local p = found.p
    return p and p.fence == fence and band(p.flags, HELD) ~= 0 and found.where ~= 'dead'
end

-- Removes holds of this zone that have ended. Such keys are free whether they were removed or not.
local function sweep_holds(budget, zone)
    local over = call('ZRANGE', H, zone, zone + now(), 'BYSCORE', 'LIMIT', 0, budget)
    for _, key in ipairs(over) do
        call('ZREM', H, key)
        local id = call('HGET', K, key)
        if id and (zone > 0 or call('HEXISTS', J, id) == 0) then
            call('HDEL', K, key)
        end
    end
end

-- A marker is a key that a put has besides that of its job: by it the put is recognised when it is
-- repeated, whatever has become of the job. It is held from the put on, in zone 1: no caller knows
-- of it, so it lets no topic exist.
local NO_JOB = '\0\0\0\0\0\0\0\0'

-- The id of the job that the put with this marker came to, NO_JOB if it was given up, or nil if
-- there was none.
local function marked(marker)
    return held_until(marker) and call('HGET', K, marker) or nil
end

local function mark(marker, id, ttl)
    call('ZADD', H, ZONE + after(ttl), marker)
    call('HSET', K, marker, id)
    sweep_holds(4, ZONE)
end

-- Applies what the passing of time has changed: expired leases of last attempts, dead jobs that are
-- too old, holds and histories that have ended. For verbs that count or list; true = there may be
-- more to do.
function sweep(budget)
    local left = budget or SWEEP
    for _, priority in ipairs(PRIORITIES) do
        local over = call('ZRANGE', Z[priority], 2 * ZONE, 2 * ZONE + now(), 'BYSCORE', 'LIMIT', 0,
            left, 'WITHSCORES')
        for i = 1, #over, 2 do
            local id, at = over[i], tonumber(over[i + 1]) - 2 * ZONE
            local progress = call('HGET', F, id)
            if progress then
                bury_expired(id, read_progress(progress), priority, at)
            else
                call('ZREM', Z[priority], id)
            end
            left = left - 1
        end
        if left <= 0 then
            return true
        end
    end
    sweep_holds(budget or SWEEP, 0)
    if not budget then
        sweep_holds(SWEEP, ZONE)
    end
    local more = (ARGV[12] ~= '' or not budget) and trim_done(budget or SWEEP)
    return trim_dead(budget or SWEEP) or more
end

-- Whether Redis is at maxmemory. Tested by a write that changes nothing, before the script's first
-- real one: after that one Redis refuses no more writes of this script.
local memory_is_out -- nil = not tested yet
local function out_of_memory()
    if memory_is_out == nil then
        local reply = pcall_redis('ZADD', D, 'XX', 0, '')
        memory_is_out = type(reply) == 'table' and reply.err ~= nil
        if memory_is_out then
            -- A write that is allowed: Redis accepts all later ones, and verbs that remove jobs
            -- must work.
            call('HDEL', S, '')
        end
    end
    return memory_is_out
end

-- Adds a record to the answer.
local function add_record(id, record)
    records[#records + 1] = record
    record_ids[#record_ids + 1] = id
end

slow = { groups = groups, out_of_memory = out_of_memory }

-- Parks those of these new jobs (ids and records in turn) that are visible and have a group. Their
-- groups may have room: they are looked at.
function slow.park_new(created)
    for i = 1, #created, 2 do
        local id, group = created[i], group_of(created[i + 1])
        local priority = group and read_head(created[i + 1]).priority
        local score = group and tonumber(call('ZSCORE', Z[priority], id))
        if score and score <= now() then
            groups.park(group, id, priority, score)
            groups.list(group, now())
        end
    end
end
