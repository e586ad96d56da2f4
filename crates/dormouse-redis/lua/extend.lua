-- extend: per token one argument: id c8, fence I8, ttr I6 (0 = the lease's own length).
-- Answers per token: result B (0 done, 2 gone, 3 lost, 7 held by a limit), expires_at I6 (held: how
-- many jobs it has leased), the limit B, its group I2 + bytes.

-- The limit that has no slot for a job of this group, and how many it has leased. A rate says
-- nothing about a job that was taken before.
local function slot_limit(group)
    local limit, leased = flow.held()
    if limit ~= BY_LEASED_MAX then
        limit, leased = groups.held(group)
        limit = limit == BY_GROUP_LEASED_MAX and limit or nil
    end
    return limit, leased
end

-- Lets the lease of a located job go on for so long. Returns when it ends.
local function extend_lease(found, ttr)
    local id, p = found.id, found.p
    if found.where == 'lapsed' then
        -- The job was not reserved since: the same lease continues, with the job's own ttr.
        p.expiries = p.expiries + 1
        p.ttr = found.head.ttr
        p.flags = with(p.flags, RESUMED)
        count(EXPIRIES, 1)
        call('HSET', F, id, write_progress(p))
    end
    local expires_at = after(ttr > 0 and ttr or p.ttr)
    local zone = band(p.flags, LAST) ~= 0 and 2 or 1
    if found.head.group then
        if found.where == 'lapsed' then
            groups.leave(found.head.group, id, found.priority)
        end
        groups.lease(found.head.group, id, expires_at)
    end
    call('ZADD', Z[found.priority], zone * ZONE + expires_at, id)
    if zone == 1 then
        note_deadline(id, found.head.span, expires_at)
        note_expiry(expires_at)
        wake(expires_at)
    else
        free_slot(expires_at)
    end
    return expires_at
end

verbs.extend = function(at, arguments)
    local answers = {}
    for i = at, at + arguments - 1 do
        local id, fence, ttr = unpack_struct('>c8I8I6', ARGV[i])
        local found = locate(id)
        local outcome, number, limit, leased, group = GONE, 0, nil, nil, NO_GROUP
        if found and not holds_lease(found, fence) then
            outcome = LOST
        elseif found then
            if flow and found.where == 'lapsed' then
                -- Its slot was free since the lease expired.
                limit, leased = slot_limit(found.head.group)
                group = limit == BY_GROUP_LEASED_MAX and found.head.group or group
            end
            outcome = limit and HELD_BACK or DONE
            number = limit and leased or extend_lease(found, ttr)
        end
        answers[#answers + 1] = pack('>BI6B', outcome, number, limit or 0) .. group
    end
    return concat(answers), true
end
