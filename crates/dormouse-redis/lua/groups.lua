-- Groups: the slots that their leases use, their paces, and parked jobs.
--
-- A group is written as in records, I2 + bytes. g has the slots: group, id c8. q has parked jobs:
-- group, priority I4, instant I6, id c8, zone B (3 or 4, as in the zset of the priority). Scores
-- are 0, so both are sorted by their bytes, and all of a group are neighbours: they are counted and
-- read at a cost that does not depend on their number. u has paces: tat_ms d, tat_parts d, then the
-- rate that they are of, as in ARGV 14. i has the end of each slot in zone 0; in zone 1 LOOK and a
-- group: it may have room for a parked job then; or REVIEW and a group: all groups after that one
-- are to be looked at; in zone 2 PACE and a group.
--
-- LOOK_AT is not later than the first of zone 1 and, where groups have limits, of zone 0. So beyond
-- it no slot has expired, and slots are counted exactly; before, too many may be counted.

-- The member of q for a parked job.
local function parked_member(group, priority, at, id, zone)
    return group .. pack('>I4I6c8B', priority, at, id, zone)
end

local groups = {}
do
    local SETTLED, LOOKS, LOOK_JOBS, REVIEWS = 64, 32, 32, 64
    local LINE_MAX = 256 -- with more visible jobs, new ones of groups are parked at once
    local BEYOND = '\255\255\255\255\255' -- after the first field of all members
    local UNLIMITED, PACE_RATE_AT = 1000000000, 17
    local limit, rate = flow and flow.group_leased_max or 0, flow and flow.group_rate
    local has_limits = flow ~= nil and flow.has_groups
    local rooms = {} -- by group: how many more jobs may be taken now; nil = not looked up yet

    function groups.note_look(at)
        if at < header[LOOK_AT] then
            set(LOOK_AT, at)
        end
    end

    local function count_slots(group)
        return call('ZLEXCOUNT', G, '[' .. group, '(' .. group .. BEYOND)
    end

    local function pace_of(group)
        local text = call('HGET', U, group)
        if not text then
            return 0, 0
        end
        local ms, parts = unpack_struct('>dd', text)
        if sub(text, PACE_RATE_AT) ~= rate.text and parts > 0 then
            return ms + 1, 0
        end
        return ms, parts
    end

    -- How many more jobs of a group may be taken now.
    function groups.room(group)
        local room = rooms[group]
        if not room then
            room = limit > 0 and max(limit - count_slots(group), 0) or UNLIMITED
            room = rate and min(room, flow.rate_room(rate, pace_of(group))) or room
            rooms[group] = room
        end
        return room
    end

    -- One of them is about to be taken.
    function groups.use(group)
        rooms[group] = groups.room(group) - 1
    end

    -- The limit of a group that lets no job of it be taken, as flow.held says it.
    function groups.held(group)
        if not has_limits or not group then
            return nil
        end
        local leased = limit > 0 and count_slots(group) or 0
        if limit > 0 and leased >= limit then
            return BY_GROUP_LEASED_MAX, leased, 0
        elseif rate and flow.rate_room(rate, pace_of(group)) == 0 then
            return BY_GROUP_RATE, leased, flow.open_at(rate, pace_of(group)) - now()
        end
        return nil
    end

    -- A group may have room for a parked job at this instant.
    function groups.list(group, at)
        if call('EXISTS', Q) == 1 then
            call('ZADD', I, 'LT', ZONE + at, LOOK .. group)
            groups.note_look(at)
            wake(at)
        end
    end

    -- Parks a visible job of zone 0 or 1.
    function groups.park(group, id, priority, score)
        local zone = score < ZONE and 3 or 4
        call('ZADD', Z[priority], format('%d', zone * ZONE + score % ZONE), id)
        call('ZADD', Q, 0, parked_member(group, priority, score % ZONE, id, zone))
    end

    -- A slot is used until then at the latest: who waits for it must know.
    function groups.note_end(at)
        if has_limits then
            groups.note_look(at)
            wake(at)
        end
    end

    -- A job of this group is leased until then. Its slot may be taken already.
    function groups.lease(group, id, ends_at)
        call('ZADD', G, 0, group .. id)
        call('ZADD', I, ends_at, group .. id)
        rooms[group] = nil
        groups.note_end(ends_at)
    end

    -- A job of this group was taken: it counts for the rate.
    function groups.spend(group, taken)
        if not rate then
            return
        end
        local ms, parts = pace_of(group)
        ms, parts = flow.spent(rate, ms, parts, taken)
        call('HSET', U, group, pack('>dd', ms, parts) .. rate.text)
        call('ZADD', I, 2 * ZONE + ms + 1, PACE .. group)
        rooms[group] = nil
        -- Each removes more than it adds.
        local over = call('ZRANGE', I, 2 * ZONE, 2 * ZONE + now(), 'BYSCORE', 'LIMIT', 0, 2)
        for _, pace in ipairs(over) do
            call('ZREM', I, pace)
            call('HDEL', U, sub(pace, 2))
        end
        -- Time gives a rate room without any lease ending, also while the last job in line was on
        -- its way: so the next parked one is looked for when there is room, perhaps now.
        if call('ZLEXCOUNT', Q, '[' .. group, '(' .. group .. BEYOND) > 0 then
            groups.list(group, flow.open_at(rate, ms, parts))
        end
    end

    -- The lease of a job of this group has ended.
    function groups.free(group, id)
        call('ZREM', I, group .. id)
        if call('ZREM', G, group .. id) == 1 then
            rooms[group] = nil
            groups.list(group, now())
        end
    end

    -- A job leaves its place, wherever that is; its score will change. Its group may need another
    -- one in line.
    function groups.leave(group, id, priority)
        if not group or not Z[priority] then
            return
        end
        local score = tonumber(call('ZSCORE', Z[priority], id) or nil)
        local zone = score and floor(score / ZONE) or 0
        if zone > 2 then
            call('ZREM', Q, parked_member(group, priority, score % ZONE, id, zone))
        end
        groups.free(group, id)
        groups.list(group, now())
    end

    -- Brings parked jobs of a group back into the line, as many as it has room for.
    local function look(group)
        local parked = call('ZRANGE', Q, '[' .. group, '(' .. group .. BEYOND, 'BYLEX', 'LIMIT', 0,
            LOOK_JOBS + 1)
        if #parked == 0 then
            return
        end
        local room = has_limits and groups.room(group) or UNLIMITED
        for i = 1, min(room, #parked, LOOK_JOBS) do
            local priority, at, id, zone = unpack_struct('>I4I6c8B', parked[i], #group + 1)
            call('ZREM', Q, parked[i])
            local score = (zone - 3) * ZONE + at
            call('ZADD', Z[priority], format('%d', score), id)
            if zone == 4 then
                note_expiry(at)
            end
            wake(at)
        end
        if #parked > LOOK_JOBS and room > LOOK_JOBS then
            groups.list(group, now())
        elseif #parked > room and rate and groups.held(group) == BY_GROUP_RATE then
            groups.list(group, flow.open_at(rate, pace_of(group)))
        end
    end

    -- Lists the groups after this one that have parked jobs.
    local function review(group)
        local from = group == '' and '-' or '(' .. group .. BEYOND
        for _ = 1, REVIEWS do
            local first = call('ZRANGE', Q, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
            if not first then
                return
            end
            group = sub(first, 1, 2 + unpack_struct('>I2', first))
            groups.list(group, now())
            from = '(' .. group .. BEYOND
        end
        call('ZADD', I, ZONE + now(), REVIEW .. group)
    end

    -- Does what time has brought: slots whose leases have expired, groups to look at. A portion;
    -- LOOK_AT stays in the past if there is more.
    function groups.settle()
        local over = has_limits and call('ZRANGE', I, 0, now(), 'BYSCORE', 'LIMIT', 0, SETTLED)
            or {}
        for _, slot in ipairs(over) do
            groups.free(sub(slot, 1, -9), sub(slot, -8))
        end
        local looks = call('ZRANGE', I, ZONE, ZONE + now(), 'BYSCORE', 'LIMIT', 0, LOOKS)
        for _, entry in ipairs(looks) do
            call('ZREM', I, entry)
            if sub(entry, 1, 1) == REVIEW then
                review(sub(entry, 2))
            else
                look(sub(entry, 2))
            end
        end
        local first = has_limits and call('ZRANGE', I, 0, 0, 'WITHSCORES')[2] or NEVER
        local next_look = call('ZRANGE', I, ZONE, 2 * ZONE - 1, 'BYSCORE', 'LIMIT', 0, 1,
            'WITHSCORES')
        set(LOOK_AT, min(tonumber(first), NEVER, (next_look[2] or 2 * ZONE) - ZONE))
    end

    -- Whether the line is so long that new jobs of groups are parked at once: whoever comes after
    -- them must not wait until they have been passed.
    function groups.is_long_line()
        local visible = 0
        for _, priority in ipairs(has_limits and PRIORITIES or {}) do
            visible = visible + call('ZCOUNT', Z[priority], 0, now())
        end
        return visible > LINE_MAX
    end
end
