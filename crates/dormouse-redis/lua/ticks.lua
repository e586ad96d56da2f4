-- ticks: most schedules. Answers: watched B (1 = schedules, deadlines, last leases that end in a
-- letter, or done jobs must be looked after), when I6 (NEVER = unknown; it may be past), letters to
-- send I8, then the entries of schedules that are due.
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

    -- When the first lease ends whose job then dies.
    local function first_last_end()
        local first = NEVER
        for _, priority in ipairs(PRIORITIES) do
            local head = call('ZRANGE', Z[priority], 2 * ZONE, 3 * ZONE - 1, 'BYSCORE', 'LIMIT', 0,
                1, 'WITHSCORES')
            first = min(first, tonumber(head[2] or 3 * ZONE) - 2 * ZONE)
        end
        return first
    end

    -- Whether something besides schedules must be looked after, and when.
    local function look_after()
        local done = call('ZRANGE', O, 0, 0, 'WITHSCORES')[2]
        local done_at = tonumber(done or NEVER) + tonumber(ARGV[12] == '' and 0 or ARGV[12])
        local dies_at = ARGV[13] ~= '' and first_last_end() or NEVER
        return ARGV[13] ~= '' or done ~= nil or header[DEADLINE] < NEVER
                or call('EXISTS', L) == 1,
            min(done_at, dies_at, header[DEADLINE], NEVER)
    end

    verbs.ticks = function(at)
        local most = tonumber(ARGV[at])
        local parked = count_parked() > 0
        if parked or ARGV[13] ~= '' or call('EXISTS', O) == 1 then
            sweep(parked and SWEPT or nil)
        end
        if parked then
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
        local is_watched, at_ms = look_after()
        return pack('>BI6I8', (is_watched or call('EXISTS', T) == 1) and 1 or 0,
            min(at_ms, tonumber(first[2] or NEVER)), call('ZCARD', L)) .. concat(entries), false
    end
end
