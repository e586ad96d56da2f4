-- revive: per item: target. Answers per item: outcome B (0 done, 2 missing, 4 conflict,
-- 5 unknown priority), id c8, was B, due I6 (unknown priority: which).
-- revive_topic: most jobs. Revives the oldest dead, 128 at a time. Answers: how many I4, then
-- B (0 all that there was to do, 1 more to do, 2 the next has an unknown priority), that priority I4.

do
    -- Back to its priority, due now.
    local function revive(id, p)
        call('ZREM', D, id)
        p.attempts = 0
        p.kicks = p.kicks + 1
        call('HSET', F, id, write_progress(p))
        call('ZADD', Z[p.priority], now(), id)
    end

    verbs.revive = function(at, arguments)
        local answers, wrote = {}, false
        for i = at, at + arguments - 1 do
            local found = find_target(ARGV[i])
            local text
            if not found then
                text = nothing_moved()
            elseif found.where ~= 'dead' then
                text = moved(CONFLICT, found.id, state_of(found), found.at)
            elseif not Z[found.priority] then
                text = moved(UNKNOWN_PRIORITY, found.id, DEAD, found.priority)
            else
                text = moved(DONE, found.id, DEAD, now())
                revive(found.id, found.p)
                wrote = true
            end
            answers[#answers + 1] = text
        end
        if wrote then
            wake(now())
        end
        return concat(answers), wrote
    end

    verbs.revive_topic = function(at)
        local most = tonumber(ARGV[at])
        local more = sweep()
        local revived, unknown = 0, nil
        local oldest = most > 0 and call('ZRANGE', D, 0, min(most, 128) - 1) or {}
        for _, id in ipairs(oldest) do
            local progress = call('HGET', F, id)
            if not progress then
                call('ZREM', D, id)
            else
                local p = read_progress(progress)
                if not Z[p.priority] then
                    unknown = p.priority
                    break
                end
                revive(id, p)
                revived = revived + 1
            end
        end
        if revived > 0 then
            wake(now())
        end
        local left = revived < most and (more or call('EXISTS', D) == 1)
        return pack('>I4BI4', revived, unknown and REVIVE_UNKNOWN_PRIORITY
            or left and REVIVE_MORE or REVIVE_END, unknown or 0), revived > 0
    end
end
