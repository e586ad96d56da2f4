-- The limits of a topic, as far as this partition keeps them: defined only where there are some.
--
-- ARGV 14, numbers of 8 bytes (d) each, first of the topic, then of each group: how many may be
-- leased (0 = no limit); the rate: jobs (0 = no rate), and three spans, each in ms and parts of
-- which `jobs` make one: T, what one job takes; (burst - 1) T; burst T.
--
-- What is used is counted by the leases there are. A rate is one instant, tat (rate.rs has the same
-- arithmetic, in other numbers): a job may be taken if now >= floor(tat - (burst - 1) T), and tat
-- is max(tat, now) + T then. tat never counts for more than now + 1 ms + burst T. All products are
-- below 2^47, so Lua's numbers are exact.

local LIMITS, LIMITS_BYTES, RATE_AT = '>dddddddd', 64, 9
local flow
if ARGV[14] ~= '' then
    flow = {}

    -- The limits from this byte on: leased_max, and the rate or nil.
    local function read_limits(at)
        local r = { text = sub(ARGV[14], at + RATE_AT - 1, at + LIMITS_BYTES - 1) }
        local leased_max
        leased_max, r.jobs, r.t_ms, r.t_parts, r.wait_ms, r.wait_parts, r.burst_ms, r.burst_parts =
            unpack_struct(LIMITS, ARGV[14], at)
        return leased_max, r.jobs > 0 and r or nil
    end
    local leased_max, rate = read_limits(1)
    flow.group_leased_max, flow.group_rate = read_limits(LIMITS_BYTES + 1)
    flow.has_groups = flow.group_leased_max > 0 or flow.group_rate ~= nil

    -- tat as it counts now.
    local function counted(r, ms, parts)
        local full_ms = now() + 1 + r.burst_ms
        if ms > full_ms or ms == full_ms and parts > r.burst_parts then
            return full_ms, r.burst_parts
        end
        return ms, parts
    end

    -- max(tat, now).
    local function base(r, ms, parts)
        ms, parts = counted(r, ms, parts)
        if ms < now() then
            return now(), 0
        end
        return ms, parts
    end

    -- When a rate lets the next job be taken.
    function flow.open_at(r, ms, parts)
        ms, parts = counted(r, ms, parts)
        return max(ms - r.wait_ms - (parts < r.wait_parts and 1 or 0), now())
    end

    -- How many jobs a rate lets be taken now.
    function flow.rate_room(r, ms, parts)
        ms, parts = base(r, ms, parts)
        local left = (now() + 1 + r.wait_ms - ms) * r.jobs + r.wait_parts - parts
        return left > 0 and floor((left - 1) / (r.t_ms * r.jobs + r.t_parts)) + 1 or 0
    end

    -- tat after so many were taken now.
    function flow.spent(r, ms, parts, taken)
        ms, parts = base(r, ms, parts)
        parts = parts + taken * r.t_parts
        return ms + taken * r.t_ms + floor(parts / r.jobs), parts % r.jobs
    end

    -- Leases that have not expired.
    local function count_leased()
        local first, last = format('(%.0f', ZONE + now()), format('(%.0f', 2 * ZONE + now())
        local leased = 0
        for _, priority in ipairs(PRIORITIES) do
            leased = leased + call('ZCOUNT', Z[priority], first, 2 * ZONE - 1)
                + call('ZCOUNT', Z[priority], last, 3 * ZONE - 1)
        end
        return leased
    end

    -- When the first of them ends.
    local function first_end()
        local first = NEVER
        for _, priority in ipairs(PRIORITIES) do
            for zone = ZONE, 2 * ZONE, ZONE do
                local head = call('ZRANGE', Z[priority], format('(%.0f', zone + now()),
                    zone + NEVER, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
                first = min(first, head[2] and head[2] - zone or NEVER)
            end
        end
        return first
    end

    -- The limit that lets no job be taken now: its code, how many are leased, and in how many ms it
    -- is open again if time alone opens it; nil = none.
    function flow.held()
        local leased = leased_max > 0 and count_leased() or 0
        if leased_max > 0 and leased >= leased_max then
            return BY_LEASED_MAX, leased, 0
        elseif rate and flow.rate_room(rate, header[TAT_MS], header[TAT_PARTS]) == 0 then
            return BY_RATE, leased, flow.open_at(rate, header[TAT_MS], header[TAT_PARTS]) - now()
        end
        return nil
    end

    -- How many of so many jobs may be leased now.
    function flow.room(most)
        if leased_max > 0 then
            most = min(most, max(leased_max - count_leased(), 0))
        end
        return rate and min(most, flow.rate_room(rate, header[TAT_MS], header[TAT_PARTS])) or most
    end

    -- So many were leased.
    function flow.spend(taken)
        if rate and taken > 0 then
            header[TAT_MS], header[TAT_PARTS] =
                flow.spent(rate, header[TAT_MS], header[TAT_PARTS], taken)
            header[CHANGED] = true
        end
    end

    -- Until when no job can be taken as far as time is concerned (0 = one can), and whether the
    -- end of a lease would change that.
    function flow.closed_until()
        local limit, _, wait = flow.held()
        if limit == BY_LEASED_MAX then
            return first_end(), true
        end
        return limit and now() + wait or 0, false
    end
end

-- The group of a record as it is written everywhere: I2 + bytes; nil = it has none.
local function group_of(record)
    local flags = unpack_struct('>I2', record, RECORD_FLAGS_AT)
    if band(flags, HAS_GROUP) == 0 then
        return nil
    end
    local at = RECORD_OPTIONS_AT + (band(flags, HAS_ATTEMPTS) ~= 0 and 4 or 0)
        + (band(flags, HAS_TTR) ~= 0 and 6 or 0) + (band(flags, HAS_SPAN) ~= 0 and 6 or 0)
        + (band(flags, HAS_PRIORITY) ~= 0 and 4 or 0) + (band(flags, HAS_KEY_TTL) ~= 0 and 6 or 0)
    return sub(record, at, at + 1 + unpack_struct('>I2', record, at))
end
