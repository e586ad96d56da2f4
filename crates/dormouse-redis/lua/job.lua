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
-- I4, ttr I6, priority I4, key_ttl I6, key I2 + bytes, backoff I2 + bytes, schedule I2 + bytes and
-- tick I6, missed I4. Only servers read the part after it.
local function read_head(record)
    local r = { attempts_max = ATTEMPTS_MAX_DEFAULT, ttr = TTR_MS_DEFAULT,
        priority = PRIORITY_DEFAULT, key_ttl = 0 }
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
    if band(flags, HAS_PRIORITY) ~= 0 then
        r.priority = unpack_struct('>I4', record, at)
        at = at + 4
    end
    if band(flags, HAS_KEY_TTL) ~= 0 then
        r.key_ttl = unpack_struct('>I6', record, at)
        at = at + 6
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

-- Progress: what has happened to a job since it was put. The last error follows the numbers.
local function read_progress(text)
    local p = {}
    p.fence, p.attempts, p.priority, p.reserves, p.expiries, p.releases, p.kills, p.kicks, p.bytes,
        p.ttr, p.flags = unpack_struct(PROGRESS, text)
    p.error = sub(text, PROGRESS_BYTES + 1)
    return p
end
local function write_progress(p)
    return pack(PROGRESS, p.fence, p.attempts, p.priority, p.reserves, p.expiries, p.releases,
        p.kills, p.kicks, p.bytes, p.ttr, p.flags) .. p.error
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
    return { fence = 0, attempts = 0, priority = head.priority, reserves = 0, expiries = 0,
        releases = 0, kills = 0, kicks = 0, bytes = head.bytes, ttr = head.ttr, flags = flags,
        error = '' }
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

-- Removes the record, progress and key of a job that is in no zset any more.
local function forget(id, head, p)
    call('HDEL', J, id)
    if p then
        call('HDEL', F, id)
    end
    if head.key and not (p and band(p.flags, KEY_LOST) ~= 0) then
        if call('HGET', K, head.key) == id then
            call('HDEL', K, head.key)
        end
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

-- Moves a job from the zset of this priority to the dead jobs. `at` is when it died.
local function bury(id, p, priority, at)
    call('ZREM', Z[priority], id)
    call('ZADD', D, at, id)
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
-- job that died unnoticed is buried.
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
    if zone == 0 then
        found.where = 'waiting'
    elseif found.at > now() then
        found.where = 'leased'
    elseif zone == 1 then
        found.where = 'lapsed'
    else
        bury_expired(id, found.p, found.priority, found.at)
        if not died_at(id) then
            return nil -- trimmed at once
        end
        found.where = 'dead'
    end
    return found
end

-- The state that callers see.
local function state_of(found)
    if found.where == 'dead' then
        return DEAD
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

-- Removes holds that have ended. Such keys are free whether they were removed or not.
local function sweep_holds(budget)
    local over = call('ZRANGE', H, '-inf', now(), 'BYSCORE', 'LIMIT', 0, budget)
    for _, key in ipairs(over) do
        call('ZREM', H, key)
        local id = call('HGET', K, key)
        if id and call('HEXISTS', J, id) == 0 then
            call('HDEL', K, key)
        end
    end
end

-- Applies what the passing of time has changed: expired leases of last attempts, dead jobs that are
-- too old, holds that have ended. For verbs that count or list; true = there may be more to do.
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
    sweep_holds(budget or SWEEP)
    return trim_dead(budget or SWEEP)
end

-- Whether Redis is at maxmemory. Tested by a write that changes nothing, before the script's first
-- real one: after that one Redis refuses no more writes of this script.
local function out_of_memory()
    local reply = pcall_redis('ZADD', D, 'XX', 0, '')
    if type(reply) == 'table' and reply.err then
        -- A write that is allowed: Redis accepts all later ones, and verbs that remove jobs must
        -- work.
        call('HDEL', S, '')
        return true
    end
    return false
end

-- Adds a record to the answer.
local function add_record(id, record)
    records[#records + 1] = record
    record_ids[#record_ids + 1] = id
end

slow = {}
