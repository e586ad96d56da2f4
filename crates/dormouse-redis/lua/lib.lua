-- The common part of every script on a partition: its keys, its clock, its books.
--
-- KEYS  1 s  hash   b (header, see below), v (version of g), g (settings and priorities, for servers),
--                   r<name> (the last request under it, and the answer)
--       2 j  hash   id -> record
--       3 f  hash   id -> progress, of jobs that have one: taken, kicked or killed at least once
--       4 d  zset   id -> when it died
--       5 k  hash   key -> id of the job that has it, or held it when it was acked
--       6 h  zset   key -> until when it is held after the ack
--       7.. zsets   id -> score, one per priority in use, ascending
--       (x  hash    id -> record that cannot be read; only `verify` writes it)
--
-- ARGV  1 name of a server's runway, 2 number of the request, 3 version known, 4 now ('' = Redis'
--       own clock, '~' and a number = that too, and it shows about this by now),
--       5 g to be stored ('' = none), 6 priorities of KEYS 7.. (u32 each), 7 priorities to be given
--       up (u32 each; their keys are the last of KEYS), 8 the partition's shard (3 bytes),
--       9 dead_ttl, 10 dead_max ('' = none), 11 channel, then verb, number of arguments, arguments
--
-- Scores: milliseconds in the zone of the job. A waiting job is visible when its time has come, a
-- leased one when its lease ran out; whoever is leased for the last time is dead then.
--
-- Every script runs from its first line, so what a flight does not need is not made: functions, tables
-- and the variables that functions hold on to cost, together, more than most commands. Constants cost nothing:
-- script.rs puts them in where they are used. What most flights do takes its own `call` and `pack`, which
-- is cheaper than to hold on to those of all.
--
-- Numbers for Redis are texts wherever many jobs pass: it would write a Lua number with 17 digits. As Lua
-- numbers integers below 2^53 survive, but not by way of tostring.

local S, J, F, D, K, H = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local call, pcall_redis = redis.call, redis.pcall
local pack, unpack_struct = struct.pack, struct.unpack
local sub, format, concat, floor, min, max =
    string.sub, string.format, table.concat, math.floor, math.min, math.max
local band = bit.band

local SHARD = ARGV[8]
local verbs = {}
local slow -- functions that most flights do without, if they are defined; see script.rs
local records, recorded = {}, {} -- records to be answered, and whose they are

local PRIORITIES, Z
if #ARGV[6] == 4 then
    local priority = unpack_struct('>I4', ARGV[6])
    PRIORITIES, Z = { priority }, { [priority] = KEYS[7] }
else
    PRIORITIES, Z = {}, {}
    for i = 1, #ARGV[6] / 4 do
        local priority = unpack_struct('>I4', ARGV[6], i * 4 - 3)
        PRIORITIES[i] = priority
        Z[priority] = KEYS[6 + i]
    end
end

-- The clock, asked once and only if somebody wants to know.
local now_ms, fraction
local about_ms = string.byte(ARGV[4]) == 126 and tonumber(sub(ARGV[4], 2)) or nil
local function now()
    if now_ms then
        return now_ms
    end
    if ARGV[4] ~= '' and string.byte(ARGV[4]) ~= 126 then
        now_ms, fraction = tonumber(ARGV[4]), 0
    else
        local time = redis.call('TIME')
        local micros = tonumber(time[2])
        now_ms = time[1] * 1000 + math.floor(micros / 1000)
        fraction = micros % 1000 > 0 and 1 or 0
    end
    return now_ms
end

-- So long from now, rounded up; zero means at once.
local function after(delay_ms)
    local at = now() + delay_ms
    return delay_ms > 0 and at + fraction or at
end

-- The books: numbers in one text, as nearly every script changes some of them.
-- LAST_NUMBER: of a job. PAUSED: until when (0 = not). WAITING: earliest instant that waiting servers
-- know of (0 = nobody waits). LEASE_END: no lease ends before. LAST_FENCE: the last one given. The others
-- count. CHANGED and PUBLISHES are not kept: whether the header must be written and a hint be sent.
local LAST_NUMBER, PAUSED, WAITING, LEASE_END, LAST_FENCE = 1, 2, 3, 4, 5
local PUTS, RESERVES, ACKS, NACKS, EXPIRIES, RELEASES, KILLS, CANCELS, BYTES = 6, 7, 8, 9, 10, 11, 12, 13, 14
local CHANGED, PUBLISHES = 15, 16
local HEADER, HEADER_BYTES = '>dddddddddddddd', 112
local header

local function set(entry, value)
    header[entry] = value
    header[CHANGED] = true
end

local function count(which, by)
    set(which, header[which] + by)
end

-- A job becomes visible at this instant: who waits must not sleep beyond it.
local function wake(at)
    if at < header[WAITING] then
        set(WAITING, at)
        header[PUBLISHES] = true
    end
end

-- A lease ends at this instant.
local function note_expiry(at)
    if at < header[LEASE_END] then
        set(LEASE_END, at)
    end
end

-- A fence is greater than all that the partition gave before it, also after a failover that lost the
-- last ones, as long as the clock of the new primary is not behind.
local function next_fence()
    local fence = math.max(header[LAST_FENCE] + 1, now() * 2048)
    set(LAST_FENCE, fence)
    return fence
end
