-- chain: token (id c8, fence c8; '' = of another partition), '', '1' = only look; then the
-- arguments of put, perhaps of no job. Acks the job and puts others, all or nothing.
-- Answers: result B (0 done, 2 gone, 3 lost, 4 a put is refused), attempts I4, index I2 of the put
-- that is refused; then the answers of put, or that to the refused one.

do
    -- The result of a put after the ack, the state of the job in its way, and that job; nil = the
    -- put creates a job.
    local function foresee(meta, key, acked)
        local clock, due, _, on_conflict = unpack_struct('>BI6I4B', meta)
        local marker = marker_of(meta)
        if marker and marked(marker) then
            return DUPLICATE -- it is done
        end
        local found = key ~= '' and key_owner(key) or nil
        if found and acked and found.id == acked.id then
            -- After the ack its key is free, or held.
            found = acked.head.key_ttl > 0
                and { where = 'held', id = acked.id, at = after(acked.head.key_ttl) } or nil
        end
        if not found then
            return nil
        end
        local at = clock == CLOCK_AT and due or after(due)
        local outcome, state = resolve_conflict(on_conflict, at, found)
        return outcome, state, found
    end

    -- The index of the first put that would be refused after the ack, and the answer to it.
    local function find_refused(at, arguments, acked)
        local jobs, total = 0, header[BYTES]
        local jobs_max, bytes_max
        if ARGV[at] ~= '' then
            jobs_max, bytes_max = unpack_struct('>I8I8', ARGV[at])
            jobs = count_jobs()
        end
        local more_jobs, more_bytes = acked and -1 or 0, acked and -acked.head.bytes or 0
        for index = 1, (arguments - 1) / 3 do
            local i = at + index * 3 - 2
            local bytes = unpack_struct('>I4', ARGV[i + 2])
            local outcome, state, found = foresee(ARGV[i], ARGV[i + 1], acked)
            if outcome == REFUSED or outcome == HELD_REFUSED then
                return index, pack('>I2BBc8I6', 1, outcome, state, found.id, found.at)
            elseif not outcome or outcome == REPLACED then
                more_jobs = more_jobs + (outcome and 0 or 1)
                more_bytes = more_bytes + bytes - (outcome and found.head.bytes or 0)
                if jobs_max and jobs + more_jobs > max(jobs_max, jobs) then
                    return index, failure(JOBS_FULL, jobs)
                elseif bytes_max and total + more_bytes > max(bytes_max, total) then
                    return index, failure(BYTES_FULL, total)
                end
            end
        end
        return nil
    end

    local function answer(outcome, attempts, index, text)
        return pack('>BI4I2', outcome, attempts or 0, index or 0) .. (text or '')
    end

    verbs.chain = function(at, arguments)
        local token, only_look, acked = ARGV[at], ARGV[at + 2] == '1', nil
        local first, count_of_put = at + 3, arguments - 3
        local is_out_of_memory = count_of_put > 1 and out_of_memory()
        if token ~= '' then
            local id, fence = unpack_struct('>c8I8', token)
            acked = locate(id)
            if not acked then
                return answer(GONE), false
            elseif not holds_lease(acked, fence) then
                return answer(LOST), false
            end
        end
        if is_out_of_memory then
            return answer(CONFLICT, 0, 1, failure(NO_MEMORY, 0)), true
        end
        local index, refusal = find_refused(first, count_of_put, acked)
        if index then
            return answer(CONFLICT, 0, index, refusal), false
        elseif only_look then
            return answer(DONE), false
        end
        verbs.ack(at)
        local puts = count_of_put > 1 and verbs.put(first, count_of_put, '') or ''
        return answer(DONE, acked and acked.p.attempts, 0, puts), true
    end
end
