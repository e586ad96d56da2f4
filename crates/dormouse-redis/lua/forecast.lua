-- forecast: from I6, step I6, to I6. Counts the waiting jobs that become due in each step of
-- [from, to). Answers: number of steps I2, each I8. One call computes at least one step and as many
-- as COUNTS_MAX allows; the server continues after them.

-- ZCOUNT commands of one call: each takes some microseconds.
local COUNTS_MAX = 500

verbs.forecast = function(at)
    local from, step, to = unpack_struct('>I6I6I6', ARGV[at])
    local lanes = {}
    local has_parked = call('EXISTS', Q) == 1
    for _, priority in ipairs(PRIORITIES) do
        local zset = Z[priority]
        if has_parked then
            lanes[#lanes + 1] = { zset = zset, zone = 3 * ZONE, last = NEVER }
            lanes[#lanes + 1] = { zset = zset, zone = 4 * ZONE, last = now() }
        end
        if call('ZCOUNT', zset, from, min(to - 1, NEVER)) > 0 then
            lanes[#lanes + 1] = { zset = zset, zone = 0, last = NEVER }
        end
        -- A job whose lease has expired is due since then.
        if from <= now() and call('ZCOUNT', zset, ZONE + from, ZONE + min(to - 1, now())) > 0 then
            lanes[#lanes + 1] = { zset = zset, zone = ZONE, last = now() }
        end
    end
    local most = max(floor(COUNTS_MAX / max(#lanes, 1)), 1)
    local steps, begin = {}, from
    while begin < to and #steps < most do
        local finish, sum = min(begin + step, to), 0
        for _, lane in ipairs(lanes) do
            local last = min(finish - 1, lane.last)
            if begin <= last then
                sum = sum + call('ZCOUNT', lane.zset, format('%d', lane.zone + begin),
                    format('%d', lane.zone + last))
            end
        end
        steps[#steps + 1] = pack('>I8', sum)
        begin = finish
    end
    return pack('>I2', #steps) .. concat(steps), false
end
