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

    -- The job of this id, if it lives.
    local function living(id)
        local found = id ~= '' and locate(id)
        return found and found.where ~= 'dead' and found or nil
    end

    -- The limits of a put for which this job makes room.
    local function limits_without(found, limits)
        if limits == '' then
            return limits
        end
        local jobs_max, bytes_max = unpack_struct('>I8I8', limits)
        return pack('>I8I8', jobs_max + 1, bytes_max + found.head.bytes)
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
        local replaced = living(cancelled)
        if arguments > ARGUMENTS then
            local limits = replaced and limits_without(replaced, ARGV[at + ARGUMENTS])
            local put = verbs.put(at + ARGUMENTS, arguments - ARGUMENTS, limits)
            local _, result, _, created, at_ms = unpack_struct('>I2BBc8I6', put)
            if result ~= CREATED then
                return answer(CONFLICT, result, NO_JOB, at_ms), true
            end
            id, due = created, at_ms
        end
        if replaced then
            note_lapse(replaced)
            if replaced.where == 'leased' then
                free_slot()
            end
            groups.leave(replaced.head.group, cancelled, replaced.priority)
            call('ZREM', Z[replaced.priority], cancelled)
            forget(cancelled, replaced.head, replaced.p)
            count(CANCELS, 1)
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
