-- ticks: most schedules. Answers: schedules in all I8, the next score I6 after those answered
-- (NEVER = none; it may be past), then the entries that are due.
--
-- Whatever may have ended the job of a schedule that waits is looked for, a little at a time.

do
    local SWEPT, REVIEWED, REVIEW_MS = 16, 8, 5000

    local function count_parked()
        return call('ZCOUNT', T, ZONE, 2 * ZONE - 1)
    end

    -- Schedules that wait for a job that is gone are due. It was lost without a trace: every look
    -- reviews others.
    local function review()
        local parked = count_parked()
        if parked == 0 then
            return
        end
        local first = call('ZCOUNT', T, '-inf', NEVER_TEXT)
        local from = floor(now() / REVIEW_MS) * REVIEWED % parked
        local names = call('ZRANGE', T, first + from, first + min(from + REVIEWED, parked) - 1)
        for _, name in ipairs(names) do
            local value = call('HGET', N, name)
            if not value or not has_living_job(value) then
                settle_tick(name, now())
            end
        end
    end

    verbs.ticks = function(at)
        local most = tonumber(ARGV[at])
        if count_parked() > 0 then
            sweep(SWEPT)
            review()
        end
        local names = call('ZRANGE', T, 0, now(), 'BYSCORE', 'LIMIT', 0, most)
        local entries, bytes = {}, 0
        for _, name in ipairs(names) do
            local value = bytes <= ENTRIES_BYTES_MAX and call('HGET', N, name)
            if value then
                bytes = bytes + #value
                entries[#entries + 1] = schedule_entry(name, value, has_living_job(value))
            elseif bytes <= ENTRIES_BYTES_MAX then
                call('ZREM', T, name)
            end
        end
        local first = call('ZRANGE', T, 0, NEVER_TEXT, 'BYSCORE', 'LIMIT', #entries, 1,
            'WITHSCORES')
        -- The answer tells of all that is due.
        header[TICKS_DUE] = nil
        local next_at = tonumber(first[2] or NEVER)
        return pack('>I8I6', call('ZCARD', T), next_at) .. concat(entries), false
    end
end
