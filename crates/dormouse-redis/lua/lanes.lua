-- Reads jobs in order without leasing them, at a cost that does not depend on their number.
--
-- A lane is a range of a zset: { zset, priority, zone, first, last }, where `first` and `last` are
-- scores, and a score minus `zone` is an instant.

local merged, merged_back, lanes_of, bounded
do
    -- The number of members before this score and id ('' = before all with this score). A range by
    -- score ignores ids, but members with the same score are sorted by id, so a binary search finds
    -- the position: log2(n) commands for n members with the same score, and mostly none.
    local function rank_of(zset, score, id)
        local low = call('ZCOUNT', zset, '-inf', format('(%.0f', score))
        if id == '' then
            return low
        end
        local high = low + call('ZCOUNT', zset, score, score)
        while low < high do
            local middle = floor((low + high) / 2)
            if is_before(call('ZRANGE', zset, middle, middle)[1], id) then
                low = middle + 1
            else
                high = middle
            end
        end
        return low
    end

    -- Sets the lane's `id` and `at` to its next job; `id` is nil at the end.
    local function advance(lane)
        lane.index = lane.index + 2
        if lane.index > #lane.read then
            if #lane.read > 0 and #lane.read < lane.step * 2 then
                lane.id = nil
                return
            end
            lane.read = call('ZRANGE', lane.zset, lane.rank, lane.rank + lane.step - 1,
                'WITHSCORES')
            lane.rank = lane.rank + lane.step
            lane.index = 1
        end
        local score = tonumber(lane.read[lane.index + 1])
        lane.id = score and score <= lane.last and lane.read[lane.index] or nil
        lane.at = score and score - lane.zone
        lane.number = lane.id and number_of(lane.id)
    end

    -- Sets the lane's `id` and `at` to the job before; `id` is nil at the begin.
    local function step_back(lane)
        lane.index = lane.index - 2
        if lane.index < 1 then
            lane.read, lane.index = {}, 1
            if lane.rank > 0 then
                local low = max(lane.rank - lane.step, 0)
                lane.read = call('ZRANGE', lane.zset, low, lane.rank - 1, 'WITHSCORES')
                lane.rank, lane.index = low, #lane.read - 1
            end
        end
        local score = tonumber(lane.read[lane.index + 1])
        lane.id = score and score >= lane.first and lane.read[lane.index] or nil
        lane.at = score and score - lane.zone
        lane.number = lane.id and number_of(lane.id)
    end

    -- At most `most` jobs of these lanes, each with id, at, lane. `start` tells the score at which
    -- a lane begins, `step` leads to its next job; `sign` is 1 if instants and ids grow on the way,
    -- else -1. Costs a few commands per lane and one per 16 jobs.
    local function merge(lanes, at, id, most, start, step, sign)
        local open, portion = {}, #lanes > 2 and min(most, 16) or most
        for _, lane in ipairs(lanes) do
            local score = start(lane, lane.zone + at)
            lane.rank = rank_of(lane.zset, score, score == lane.zone + at and id or '')
            lane.read, lane.index, lane.step = {}, 0, portion
            step(lane)
            if lane.id then
                open[#open + 1] = lane
            end
        end
        local list = {}
        while #list < most and #open > 0 do
            local best = 1
            for i = 2, #open do
                local a, b = open[i], open[best]
                local order = a.at == b.at and a.number - b.number or a.at - b.at
                if order * sign < 0 then
                    best = i
                end
            end
            local lane = open[best]
            list[#list + 1] = { id = lane.id, at = lane.at, lane = lane }
            step(lane)
            if not lane.id then
                table.remove(open, best)
            end
        end
        return list
    end

    local function from_first(lane, score)
        return max(lane.first, score)
    end

    local function from_last(lane, score)
        return min(lane.last + 1, score)
    end

    -- The first `most` jobs of these lanes from (at, id) on, by instant, then id.
    function merged(lanes, at, id, most)
        return merge(lanes, at, id, most, from_first, advance, 1)
    end

    -- The last `most` jobs of these lanes before (at, id), the last one first.
    function merged_back(lanes, at, id, most)
        return merge(lanes, at, id, most, from_last, step_back, -1)
    end

    -- These lanes within [low, high).
    function bounded(lanes, low, high)
        for _, lane in ipairs(lanes) do
            lane.first = max(lane.first, lane.zone + low)
            lane.last = min(lane.last, lane.zone + high - 1)
        end
        return lanes
    end

    local function add(lanes, priority, zone, first, last)
        lanes[#lanes + 1] = { zset = Z[priority], priority = priority, zone = zone,
            first = zone + first, last = zone + last }
    end

    -- The lanes of the jobs in a state, of these priorities. Jobs whose last lease has expired are
    -- dead, whether they were buried already or not.
    function lanes_of(state, priorities)
        local lanes, soon, parked = {}, now() + 1, call('EXISTS', Q) == 1
        for _, priority in ipairs(priorities) do
            if state == DELAYED then
                add(lanes, priority, 0, soon, NEVER)
                if parked then
                    add(lanes, priority, 3 * ZONE, soon, NEVER)
                end
            elseif state == READY then
                add(lanes, priority, 0, 0, now())
                add(lanes, priority, ZONE, 0, now())
                if parked then
                    add(lanes, priority, 3 * ZONE, 0, now())
                    add(lanes, priority, 4 * ZONE, 0, now())
                end
            elseif state == LEASED then
                add(lanes, priority, ZONE, soon, NEVER)
                add(lanes, priority, 2 * ZONE, soon, NEVER)
            elseif state == DEAD then
                add(lanes, priority, 2 * ZONE, 0, now())
            end
        end
        if state == ACKED and ARGV[12] ~= '' then
            lanes[1] = { zset = O, zone = 0, first = now() - tonumber(ARGV[12]) + 1, last = NEVER }
        elseif state == DEAD then
            lanes[#lanes + 1] = { zset = D, zone = 0, first = 0, last = NEVER }
        end
        return lanes
    end
end

-- The first job in a state, or nil: of ready jobs the one that would be reserved next if the topic
-- were not paused, of others the earliest.
local function next_of(state)
    if state ~= READY then
        return merged(lanes_of(state, PRIORITIES), 0, '', 1)[1]
    end
    for _, priority in ipairs(PRIORITIES) do
        local first = merged(lanes_of(state, { priority }), 0, '', 1)[1]
        if first then
            return first
        end
    end
    return nil
end
