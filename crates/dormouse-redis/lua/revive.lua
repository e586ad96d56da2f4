-- revive: per item: target. Answers per item: result B (0 done, 2 missing, 4 conflict,
-- 5 unknown priority), id c8, was B, due I6 (unknown priority: that priority).
-- revive_topic: most jobs. Revives the oldest dead jobs, at most BATCH_JOBS_MAX per call. Answers:
-- count I4, then B (0 the end, 1 there are more, 2 the next has an unknown priority), that priority
-- I4.

do
    -- Moves a dead job back to the zset of its priority, due now.
    local function revive(id, p)
        call('ZREM', D, id)
        p.attempts = 0
        p.kicks = p.kicks + 1
        call('HSET', F, id, write_progress(p))
        call('ZADD', Z[p.priority], now(), id)
        note_rest(id, p)
    end

    verbs.revive = function(at, arguments)
        local answers, wrote = {}, false
        for i = at, at + arguments - 1 do
            local found, done = find_target(ARGV[i])
            local text
            if not found then
                text = missing_reply(done)
            elseif found.where ~= 'dead' then
                text = change_reply(CONFLICT, found.id, state_of(found), found.at)
            elseif not Z[found.priority] then
                text = change_reply(UNKNOWN_PRIORITY, found.id, DEAD, found.priority)
            else
                text = change_reply(DONE, found.id, DEAD, now())
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
        local last = min(most, BATCH_JOBS_MAX) - 1
        local oldest = most > 0 and call('ZRANGE', D, 0, last) or {}
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
        local result = unknown and REVIVE_UNKNOWN_PRIORITY or left and REVIVE_MORE or REVIVE_END
        return pack('>I4BI4', revived, result, unknown or 0), revived > 0
    end
end
