-- Common to every script on a partition: its keys, its clock, its header.
--
-- KEYS  1 s  hash   b (header, see below), v (version of g), g (settings and priorities, read by
--                   servers only), r<name> (last batch of that sequence, and its answer), l (the
--                   topic that begun letters go to)
--       2 j  hash   id -> record
--       3 f  hash   id -> progress, of jobs that were reserved, kicked or killed at least once
--       4 d  zset   id -> when it died
--       5 k  hash   key -> id of the job that has it, or had it when it was acked; marker -> id of
--                   the job that the put came to
--       6 h  zset   key -> end of its hold after the ack; zone 1: marker -> end of its hold
--       7 t  zset   name of a schedule -> when it is due; zone 1: it waits for its newest job,
--                   zone 2: it is paused
--       8 n  hash   name of a schedule -> revision, newest job, record: see schedule.lua
--       9 e  zset   id -> when the job dies unless it is taken; or an earlier instant
--      10 o  zset   id of a done job -> when it was acked
--      11 l  zset   id of a job whose dead letter is to be sent -> when it died; zone 1: it is
--                   begun
--      12 g  zset   group and id of a leased job -> 0: the slots that are used, by group
--      13 q  zset   group, priority, instant, id and zone of a parked job -> 0, in their order
--      14 i  zset   group and id of a leased job -> end of its lease; zone 1: when to look at a
--                   group; zone 2: when the pace of a group may be forgotten
--      15 u  hash   group -> how far its rate is used, see groups.lua
--      16.. zsets   id -> score, one per priority in use, ascending
--       (x  hash    id -> record that cannot be read; only `verify` writes it)
--
-- ARGV  1 name of the sequence, 2 number of the batch in it, 3 version of g known to the server,
--       4 now ('' = the server does not know the time yet, '~' and a number = use Redis' clock,
--       which should show about that), 5 g to store ('' = none), 6 priorities of KEYS 16.. (u32
--       each), 7 priorities to drop (u32 each; their keys are the last of KEYS), 8 the partition's
--       shard (3 bytes), and, if version 0 is known, the number after which new ones may begin
--       (5 bytes), 9 dead_ttl, 10 dead_max ('' = none), 11 channel, 12 keep_done ('' = none),
--       13 dead topic ('' = none), 14 limits ('' = none, see flow.lua), 15 what the batch makes of
--       them ('' = nothing; 'k' others, 'c' and there is no rate any more, 'r' and the rate is
--       another), then verb, number of arguments, arguments
--
-- Scores: zone * ZONE + an instant in ms. Zone 0: a waiting job, visible from its due time on.
-- Zone 1: a leased job, visible again when its lease expires. Zone 2: a job leased for its last
-- attempt, dead when the lease expires. Zones 3 and 4: a parked job, that is a job of zone 0 or 1
-- that was visible while its group had no room.
--
-- Redis runs a script from its first line at every call, so functions, tables and upvalues that a
-- batch does not need are not created: together they cost more than most commands. Constants cost
-- nothing: script.rs inlines them. The hot verbs use local copies of `call` and `pack`, which is
-- cheaper than capturing these as upvalues.
--
-- Where many jobs pass, numbers for Redis are strings: it would format a Lua number with 17 digits.
-- Lua numbers are exact up to 2^53, but tostring rounds them.

local S, J, F, D, K, H = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local T, N, E, O, L = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local G, Q, I, U = KEYS[12], KEYS[13], KEYS[14], KEYS[15]
local call, pcall_redis = redis.call, redis.pcall
local pack, unpack_struct = struct.pack, struct.unpack
local sub, format, concat, floor, min, max =
    string.sub, string.format, table.concat, math.floor, math.min, math.max
local band = bit.band

local FIRST_VERB = 16 -- in ARGV
local LOOK, REVIEW, PACE = 'l', 'a', 'p' -- first bytes of members of i, see groups.lua
local NO_GROUP = '\0\0'
local SHARD = sub(ARGV[8], 1, 3)
local verbs = {}
local slow -- table of the slow paths; nil until they are defined, see script.rs
local records, record_ids = {}, {} -- records in the answer, and their jobs' ids

local PRIORITIES, Z
if #ARGV[6] == 4 then
    local priority = unpack_struct('>I4', ARGV[6])
    PRIORITIES, Z = { priority }, { [priority] = KEYS[16] }
else
    PRIORITIES, Z = {}, {}
    for i = 1, #ARGV[6] / 4 do
        local priority = unpack_struct('>I4', ARGV[6], i * 4 - 3)
        PRIORITIES[i] = priority
        Z[priority] = KEYS[15 + i]
    end
end

-- The present in ms. Redis' clock is read once, and only if a verb needs it.
local now_ms, fraction
local TILDE = 126 -- '~'
local about_ms = string.byte(ARGV[4]) == TILDE and tonumber(sub(ARGV[4], 2)) or nil
local function now()
    if now_ms then
        return now_ms
    end
    if ARGV[4] ~= '' and string.byte(ARGV[4]) ~= TILDE then
        now_ms, fraction = tonumber(ARGV[4]), 0
    else
        local time = redis.call('TIME')
        local micros = tonumber(time[2])
        now_ms = time[1] * 1000 + math.floor(micros / 1000)
        fraction = micros % 1000 > 0 and 1 or 0
    end
    return now_ms
end

-- The instant delay_ms from now, rounded up to a whole ms; 0 means now.
local function after(delay_ms)
    local at = now() + delay_ms
    return delay_ms > 0 and at + fraction or at
end

-- The header: cursors and counters in one string, as nearly every script changes some of them.
-- LAST_NUMBER: of the last job created. PAUSED: end of the pause (0 = not paused). WAITING:
-- earliest instant that waiting servers know of (0 = none waits). LEASE_END: no lease expires
-- before it. LAST_FENCE: the last fence granted. DEADLINE: no job dies before it because nobody
-- takes it. WANTS_SLOT: 1 = waiting servers wait for the end of a lease. TAT_MS, TAT_PARTS: how far
-- the rate is used, see flow.lua. LOOK_AT: no group is to be looked at before it. The others are
-- counters. CHANGED (the header must be written), PUBLISHES (waiting servers must be woken) and
-- TICKS_DUE (there is something for the timer of schedules) are not stored.
local LAST_NUMBER, PAUSED, WAITING, LEASE_END, LAST_FENCE = 1, 2, 3, 4, 5
local PUTS, RESERVES, ACKS, NACKS, EXPIRIES = 6, 7, 8, 9, 10
local RELEASES, KILLS, CANCELS, BYTES = 11, 12, 13, 14
local DEADLINE, WANTS_SLOT, TAT_MS, TAT_PARTS = 15, 16, 17, 18
local LOOK_AT, CHANGED, PUBLISHES, TICKS_DUE = 19, 20, 21, 22
local HEADER, HEADER_BYTES = '>ddddddddddddddddddd', 152
-- Earlier versions knew of no limits, and those before them of no deadlines.
local HEADER_BYTES_UNLIMITED, HEADER_BYTES_UNDYING = 120, 112
local header

local function set(entry, value)
    header[entry] = value
    header[CHANGED] = true
end

local function count(which, by)
    set(which, header[which] + by)
end

-- A job becomes visible at this instant: waiting servers must not sleep past it.
local function wake(at)
    if at < header[WAITING] then
        set(WAITING, at)
        header[PUBLISHES] = true
    end
end

-- A lease has ended, or ends at this instant: who waits for its slot must know.
local function free_slot(at)
    if header[WANTS_SLOT] > 0 then
        wake(at or now())
    end
end

-- A lease expires at this instant.
local function note_expiry(at)
    if at < header[LEASE_END] then
        set(LEASE_END, at)
    end
end

-- More than a partition grants in a ms.
local FENCES_PER_MS = 2048

-- A fence is greater than all that the partition granted before, even after a failover that lost
-- the last ones, as long as the clock of the new primary is not behind.
local function next_fence()
    local fence = math.max(header[LAST_FENCE] + 1, now() * FENCES_PER_MS)
    set(LAST_FENCE, fence)
    return fence
end
