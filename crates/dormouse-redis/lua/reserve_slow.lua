-- Slow path of reserve: leases that may have expired, jobs that may be too late, and a bound.

-- Whether nobody took this visible job in time: it is dead then.
function slow.is_late(id)
    came_late[id] = nil
    local found = locate(id)
    return not found or found.where == 'dead'
end

-- Merges jobs with an expired lease into the list, by instant, then id. Returns the list and twice
-- the number of such jobs.
function slow.with_lapsed(priority, waiting, most)
    local lapsed = call('ZRANGE', Z[priority], ZONE, ZONE + now(), 'BYSCORE', 'LIMIT', 0, most + 1,
        'WITHSCORES')
    if #lapsed == 0 then
        return waiting, 0
    end
    local list, i, j = {}, 1, 1
    while waiting[i] or lapsed[j] do
        local a, b = waiting[i], lapsed[j]
        local a_due, b_due = a and tonumber(waiting[i + 1]), b and lapsed[j + 1] - ZONE
        if a and (not b or a_due < b_due or a_due == b_due and is_before(a, b)) then
            list[#list + 1] = a
            list[#list + 1] = waiting[i + 1]
            i = i + 2
        else
            list[#list + 1] = b
            list[#list + 1] = lapsed[j + 1]
            j = j + 2
        end
    end
    return list, #lapsed
end

-- Whether a job sorts before the bound: priority, due, id.
function slow.is_within(bound, priority, due, id)
    if priority ~= bound[1] then
        return priority < bound[1]
    elseif due ~= bound[2] then
        return due < bound[2]
    end
    return is_before(id, bound[3])
end

-- Sets LEASE_END to the earliest expiry.
function slow.find_lease_end()
    local first = NEVER
    for _, priority in ipairs(PRIORITIES) do
        local head = call('ZRANGE', Z[priority], ZONE, 2 * ZONE - 1, 'BYSCORE', 'LIMIT', 0, 1,
            'WITHSCORES')
        if head[1] then
            first = min(first, head[2] - ZONE)
        end
    end
    set(LEASE_END, first)
end

-- Whether the group of a visible job has no room: it is parked then. Otherwise it is about to be
-- taken.
local taken_of, held_groups = {}, {} -- by group, in this verb
function slow.is_held(id, record, priority, score)
    local group = group_of(record)
    if not group then
        return false
    elseif groups.room(group) > 0 then
        groups.use(group)
        taken_of[group] = (taken_of[group] or 0) + 1
        return false
    end
    groups.park(group, id, priority, score)
    held_groups[group] = true
    return true
end

-- Jobs with groups are leased: ends and members of g in turn.
function slow.note_slots(ends)
    for i = 1, #ends, 2 do
        groups.note_end(tonumber(ends[i]))
    end
end

-- What was taken counts for the rates of its groups; those that are held by their rate are looked
-- at when it is open.
function slow.spend_groups()
    for group, taken in pairs(taken_of) do
        groups.spend(group, taken)
    end
    for group in pairs(held_groups) do
        local limit, _, wait = groups.held(group)
        if limit ~= BY_GROUP_LEASED_MAX then
            groups.list(group, now() + (wait or 0))
        end
    end
    taken_of, held_groups = {}, {}
end
