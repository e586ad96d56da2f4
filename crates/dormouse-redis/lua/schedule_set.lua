-- schedule_set: name; expected revision ('' = it must not be there); version of g that it was
-- planned with; score; most schedules; a job to cancel if it lives ('' = none); id of its newest
-- job; created_at and record ('' = remove it); then, to give a tick, the arguments of a put of one
-- job, which is the newest then.
-- Answers: result B (0 done, 3 it is not as expected, 4 refused, 6 too many schedules), result B of
-- the put, id c8 of the newest job, due I6 (refused: what the topic has of the limited thing). All
-- is done, or nothing.

do
    local ARGUMENTS = 8

    local function answer(outcome, put_outcome, id, due)
        return pack('>BBc8I6', outcome, put_outcome, id or NO_JOB, due or 0)
    end

    local function cancel_living(id)
        local found = locate(id)
        if found and found.where ~= 'dead' then
            note_lapse(found)
            call('ZREM', Z[found.priority], id)
            forget(id, found.head, found.p)
            count(CANCELS, 1)
        end
    end

    verbs.schedule_set = function(at, arguments)
        local name, expected, version, score, most, cancelled, id, content =
            unpack(ARGV, at, at + ARGUMENTS - 1)
        local value = call('HGET', N, name)
        if (value and sub(value, 1, 8) or '') ~= expected or version ~= ARGV[3] then
            return answer(LOST, CREATED), false
        elseif not value and content ~= '' and call('HLEN', N) >= tonumber(most) then
            return answer(TOO_MANY, CREATED), false
        elseif content ~= '' and out_of_memory() then
            return answer(CONFLICT, NO_MEMORY), true
        end
        local due
        if arguments > ARGUMENTS then
            local put = verbs.put(at + ARGUMENTS, arguments - ARGUMENTS)
            local _, result, _, created, at_ms = unpack_struct('>I2BBc8I6', put)
            if result ~= CREATED then
                return answer(CONFLICT, result, NO_JOB, at_ms), true
            end
            id, due = created, at_ms
        end
        if cancelled ~= '' then
            cancel_living(cancelled)
        end
        if content == '' then
            call('HDEL', N, name)
            call('ZREM', T, name)
        else
            score = tonumber(score)
            if score >= ZONE and score < 2 * ZONE and not is_alive(id) then
                -- The job that it is to wait for has ended since the server looked.
                score = now()
            end
            call('HSET', N, name, pack('>I8c8', next_fence(), id) .. content)
            call('ZADD', T, format('%d', score), name)
            if score <= now() then
                header[TICKS_DUE] = true
            end
        end
        return answer(DONE, CREATED, id, due), true
    end
end
