-- stats: no arguments. Costs a few ZCOUNT per priority, whatever the number of jobs.
-- Answers I8 each: delayed, ready, urgent (ready, priority below the default), leased, dead, holds,
-- the nine counters, jobs; then B (0 = nothing is ready) and the due time I6 of the job that would
-- be reserved next, paused until I6 (0 = not), more B (1 = there was more to expire than one call
-- does), schedules I8, done I8.
--
-- Leases that have expired unnoticed are counted as expired.

verbs.stats = function()
    local more = sweep() or header[DEADLINE] <= now()
    local delayed, ready, urgent, leased, dead = 0, 0, 0, 0, call('ZCARD', D)
    local lapsed, spent, has_parked = 0, 0, call('EXISTS', Q) == 1
    for _, priority in ipairs(PRIORITIES) do
        local zset = Z[priority]
        local all = call('ZCARD', zset)
        if all > 0 then
            local waiting = call('ZCOUNT', zset, 0, NEVER)
            local due = call('ZCOUNT', zset, 0, now())
            local run_out, dying = 0, 0
            if all > waiting then
                run_out = call('ZCOUNT', zset, ZONE, ZONE + now())
                dying = call('ZCOUNT', zset, 2 * ZONE, 2 * ZONE + now())
            end
            local parked, put_off = 0, 0
            if has_parked then
                parked = call('ZCOUNT', zset, 3 * ZONE, 3 * ZONE + now())
                put_off = call('ZCOUNT', zset, 3 * ZONE, 4 * ZONE - 1) - parked
                local parked_lapsed = call('ZCOUNT', zset, 4 * ZONE, '+inf')
                run_out, all = run_out + parked_lapsed, all - parked - put_off
            end
            delayed = delayed + waiting - due + put_off
            ready = ready + due + run_out + parked
            if priority < PRIORITY_DEFAULT then
                urgent = urgent + due + run_out + parked
            end
            leased = leased + all - waiting - run_out - dying
            lapsed, spent = lapsed + run_out, spent + dying
        end
    end
    local holds_now = call('ZCOUNT', H, format('(%.0f', now()), NEVER)
    local totals = { unpack(header, PUTS, BYTES) }
    totals[EXPIRIES - PUTS + 1] = totals[EXPIRIES - PUTS + 1] + lapsed + spent
    totals[KILLS - PUTS + 1] = totals[KILLS - PUTS + 1] + spent
    local first = ready > 0 and next_of(READY)
    local paused = header[PAUSED]
    return pack('>I8I8I8I8I8I8', delayed, ready, urgent, leased,
        dead + (ARGV[13] == '' and spent or 0), holds_now)
        .. pack('>I8I8I8I8I8I8I8I8I8', unpack(totals)) .. pack('>I8', count_jobs())
        .. pack('>BI6I6B', first and 1 or 0, first and first.at or 0,
            paused > now() and paused or 0, more and 1 or 0)
        .. pack('>I8I8', call('ZCARD', T), call('ZCARD', O)), false
end
