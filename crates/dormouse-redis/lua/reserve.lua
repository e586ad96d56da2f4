-- reserve: most jobs, ttr ('' = each job's own), most bytes of records, bound ('' or priority I4,
-- due I6, id c8, least I2: only jobs that sort before it; if there is one, as many as `least` of
-- its priority also beyond it), waits ('1' = the server will wait for more).
-- Answers: closed until I6 (0 = not: neither is the topic paused nor do its limits hold all jobs),
-- lease end I6 (no lease expires before, and no group is to be looked at; 0 = none), number of jobs
-- I2, their ids c8; number of runs of leases I2, per run: index I2 of its first job, that job's
-- fence I8 (each job after it has the next), attempt I4, expires_at I6, ttr I6, priority I4,
-- flags B; number of runs of due times I2, per run: index I2 of its first job, due I6;
-- number of heads B, per priority read: priority I4, due I6 (0 = none), id c8 of the first job
-- left; again B (1 = there is more to look at than one call does).
--
-- Fast path: there is no bound, no lease can have expired, no job is too late, no group is to be
-- looked at, and groups have no limits. Otherwise it answers nil once, and uses `slow` when
-- executed again.

-- The first jobs of a priority. Returns a list of ids and scores in turn, with one job more than
-- wanted, so that the next is known; the ids of those that may be leased, whose scores become
-- numbers in the list; their count; whether the next one is visible but beyond the bound; and the
-- number of expired leases in the list. `before`: jobs taken from priorities before this one.
local function visible_jobs(priority, most, bound, before)
    local list = redis.call('ZRANGE', Z[priority], '0', NEVER_TEXT, 'BYSCORE', 'LIMIT', '0',
        string.format('%d', most + 1), 'WITHSCORES')
    local lapsed = 0
    if header[LEASE_END] <= now_ms then
        list, lapsed = slow.with_lapsed(priority, list, most)
    end
    local ids, n, text, score = {}, 0, nil, nil
    while n < most and list[n * 2 + 1] do
        if list[n * 2 + 2] ~= text then -- many are equal
            text = list[n * 2 + 2]
            score = tonumber(text)
        end
        local due = score < ZONE and score or score - ZONE
        if due > now_ms then
            break
        elseif bound
            and (before + n == 0 or before + n >= bound[4] or priority ~= bound[1])
            and not slow.is_within(bound, priority, due, list[n * 2 + 1]) then
            return list, ids, n, true, lapsed
        end
        n = n + 1
        ids[n], list[n * 2] = list[n * 2 - 1], score
    end
    return list, ids, n, false, lapsed
end

-- The terms of a job's lease. Returns the new progress before and after its field bytes (without
-- the fence), the score, the end of the answer, and the last byte of the record's options: jobs
-- without progress and with the same options have the same terms.
function lease_terms(record, progress, lapsed, priority, given_ttr)
    local band, unpack_struct = bit.band, struct.unpack
    local _, options = unpack_struct('>I4I2', record, RECORD_BYTES_AT)
    local attempts_max, ttr, at = ATTEMPTS_MAX_DEFAULT, TTR_MS_DEFAULT, RECORD_OPTIONS_AT
    if band(options, HAS_ATTEMPTS) ~= 0 then
        attempts_max = unpack_struct('>I4', record, at)
        at = at + 4
    end
    if band(options, HAS_TTR) ~= 0 then
        ttr = unpack_struct('>I6', record, at)
        at = at + 6
    end
    ttr = given_ttr or ttr
    local attempts, reserves, expiries, releases, kills, kicks = 0, 0, 0, 0, 0, 0
    local flags, message = band(options, HAS_KEY) ~= 0 and KEYED or 0, ''
    flags = band(options, HAS_TICK) ~= 0 and flags + TICKED or flags
    flags = band(options, HAS_SPAN) ~= 0 and flags + SPANNED or flags
    flags = band(options, HAS_GROUP) ~= 0 and flags + GROUPED or flags
    if progress then
        attempts, reserves, expiries, releases, kills, kicks, flags =
            unpack_struct(PROGRESS_TO_LEASE, progress)
        message = string.sub(progress, PROGRESS_BYTES + 1)
    end
    attempts, reserves = attempts + 1, reserves + 1
    if lapsed then
        expiries = expiries + 1
        header[EXPIRIES] = header[EXPIRIES] + 1
    end
    local last = attempts_max ~= 0 and attempts >= attempts_max
    flags = band(flags, KEYED + KEY_LOST + TICKED + SPANNED + GROUPED) + HELD
        + (last and LAST or 0)
    local expires_at = after(ttr)
    if not last then
        note_expiry(expires_at)
        wake(expires_at)
    else
        free_slot(expires_at)
    end
    return struct.pack('>I4I4I4I4I4I4I4', attempts, priority, reserves, expiries, releases, kills,
            kicks),
        struct.pack('>I6B', ttr, flags) .. message,
        string.format('%d', (last and 2 or 1) * ZONE + expires_at),
        struct.pack('>I4I6I6I4B', attempts, expires_at, ttr, priority, flags), at - 1
end

-- Bytes of records after which they are read in portions.
local SMALL_BYTES_MAX = 65536

-- Leases the first of these jobs, until the answer is full. Returns the bytes left in the answer,
-- the number of jobs leased, and the number of ids used. Runs are added to `leases` and `dues`,
-- with indices from `first` on.
local function lease_jobs(priority, ids, list, ttr, room, leases, dues, first, most)
    local call, pack, unpack_struct = redis.call, struct.pack, struct.unpack
    local progress, wanted, shown = call('HMGET', KEYS[3], unpack(ids)), #ids, #records
    local found, read, read_to, bytes_read = nil, 0, 0, 0 -- `found`: records read + 1 to read_to
    -- The terms of the previous job: many are equal.
    local front, back, score, tail, options, own, own_end
    local due, fence -- of the previous job
    local taken, starts, scores, n, i = { '' }, {}, {}, 0, 0 -- ids and progress from taken[2] on
    local may_be_late, filters = header[DEADLINE] <= now_ms, flow and flow.has_groups
    local slots, ends, ends_at = {}, {}, nil -- of jobs with groups
    while i < wanted and room > 0 and n < most
        and not (filters and bytes_read > RECORD_BYTES_MAX) do
        i = i + 1
        if i > read_to then
            -- Bodies may be large: hardly more are read than fit into the answer. If they have been
            -- small so far, the others are read at once.
            read = read_to
            local by_portions = read == 0 or bytes_read > SMALL_BYTES_MAX
            read_to = by_portions and math.min(read + 16, wanted) or wanted
            found = call('HMGET', KEYS[2], unpack(ids, read + 1, read_to))
        end
        local id, record, lapsed = ids[i], found[i - read], list[i * 2] >= ZONE
        bytes_read = bytes_read + #(record or '')
        if not record then
            call('ZREM', Z[priority], id)
        elseif not (may_be_late and slow.is_late(id))
            and not (filters and slow.is_held(id, record, priority, list[i * 2])) then
            local bytes, its_options = unpack_struct('>I4I2', record, RECORD_BYTES_AT)
            local group = bit.band(its_options, HAS_GROUP) ~= 0 and group_of(record) or nil
            n, fence = n + 1, fence and fence + 1 or next_fence()
            if progress[i] or lapsed or its_options ~= options
                or own_end >= RECORD_OPTIONS_AT
                and string.sub(record, RECORD_OPTIONS_AT, own_end) ~= own then
                front, back, score, tail, own_end =
                    lease_terms(record, progress[i], lapsed, priority, ttr)
                starts[#starts + 1], scores[#scores + 1] = n, score
                leases[#leases + 1] = pack('>I2I8', first + n - 1, fence) .. tail
                -- Terms that depend on progress are not reused.
                options = not progress[i] and not lapsed and its_options
                own = string.sub(record, RECORD_OPTIONS_AT, own_end)
                ends_at = nil
            end
            if list[i * 2] ~= due then
                due = list[i * 2]
                dues[#dues + 1] = pack('>I2I6', first + n - 1, due % ZONE)
            end
            taken[n * 2], taken[n * 2 + 1] = id, pack('>I8c0I4c0', fence, front, bytes, back)
            if group then
                if not progress[i] then
                    taken[n * 2 + 1] = taken[n * 2 + 1] .. group
                end
                ends_at = ends_at or string.format('%d', tonumber(score) % ZONE)
                slots[#slots + 1], ends[#ends + 1] = '0', ends_at
                slots[#slots + 1], ends[#ends + 1] = group .. id, group .. id
            end
            records[shown + n], record_ids[shown + n] = record, id
            room = room - bytes
        end
    end
    if n > 0 then
        header[LAST_FENCE] = fence
        call('HSET', KEYS[3], unpack(taken, 2))
        for run = 1, #starts do
            for job = starts[run], (starts[run + 1] or n + 1) - 1 do
                taken[job * 2 - 1] = scores[run]
            end
        end
        call('ZADD', Z[priority], unpack(taken, 1, n * 2))
        if #slots > 0 then
            call('ZADD', KEYS[12], unpack(slots))
            call('ZADD', KEYS[14], unpack(ends))
            if filters then
                slow.note_slots(ends)
            end
        end
    end
    return room, n, i
end

-- Jobs that one look at a line reads at least where groups have limits, and looks per script that
-- only passed jobs.
local PASS_JOBS, PASSES_MAX = 64, 3

verbs.reserve = function(at)
    local pack, concat, min, max = struct.pack, table.concat, math.min, math.max
    -- The answer ends where another job might not fit.
    local most, ttr, room = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), ARGV[at + 2] - JOB_BYTES_MAX
    local bound, paused = ARGV[at + 3], header[PAUSED] > now() and header[PAUSED] or 0
    local lapses = header[LEASE_END] <= now_ms
    if not slow and (lapses or bound ~= '' or header[DEADLINE] <= now_ms
        or header[LOOK_AT] <= now_ms or flow and flow.has_groups) then
        return nil
    end
    if slow and header[LOOK_AT] <= now_ms then
        slow.groups.settle()
    end
    bound = bound ~= '' and { struct.unpack('>I4I6c8I2', bound) }
    most = flow and paused == 0 and flow.room(most) or most
    local leases, dues, heads, shown = {}, {}, {}, #records
    local jobs, lapsed, next_at = 0, 0, NEVER
    -- With limits of groups, jobs may be passed: a portion per script.
    local passes, filters = 0, flow and flow.has_groups
    for _, priority in ipairs(paused == 0 and PRIORITIES or {}) do
        if jobs >= most or room <= 0 or passes > PASSES_MAX then
            break
        end
        local beyond, goes_on
        repeat
            local wanted, list, ids, n, seen = most - jobs
            list, ids, n, beyond, seen =
                visible_jobs(priority, filters and max(wanted, PASS_JOBS) or wanted, bound, jobs)
            local taken, passed = 0, 0
            if n > 0 then
                room, taken, passed =
                    lease_jobs(priority, ids, list, ttr, room, leases, dues, jobs, wanted)
            end
            jobs, lapsed = jobs + taken, lapsed + seen
            -- Others may be behind those that were passed.
            goes_on = filters and passed == n and passed > taken and jobs < most and not beyond
            passes = passes + (goes_on and 1 or 0)
            if not goes_on or passes > PASSES_MAX then
                local id = list[passed * 2 + 1] or '\0\0\0\0\0\0\0\0'
                local due = tonumber(list[passed * 2 + 2])
                due = due and due % ZONE
                heads[#heads + 1] = pack('>I4I6c8', priority, due or 0, id)
                next_at = min(next_at, due or NEVER)
            end
        until not goes_on or passes > PASSES_MAX
        if beyond then
            break
        end
    end
    -- LEASE_END is past although no lease has expired: it is too low.
    if lapses and paused == 0 and lapsed == 0 then
        slow.find_lease_end()
    end
    header[RESERVES] = header[RESERVES] + jobs
    local closed, wants_slot, next_end = paused, false, min(header[LEASE_END], header[LOOK_AT])
    if flow and paused == 0 then
        flow.spend(jobs)
        if filters then
            slow.spend_groups()
            next_end = min(next_end, header[LOOK_AT])
        end
        closed, wants_slot = flow.closed_until()
    end
    local again = paused == 0 and (passes > PASSES_MAX or header[LOOK_AT] <= now_ms)
    if ARGV[at + 4] == '1' then
        local sleep = closed > 0 and closed or min(next_at, next_end)
        if header[WAITING] ~= sleep then
            set(WAITING, sleep)
        end
        if header[WANTS_SLOT] ~= (wants_slot and 1 or 0) then
            set(WANTS_SLOT, wants_slot and 1 or 0)
        end
    end
    return concat({ pack('>I6I6I2', min(closed, NEVER), next_end, jobs),
        concat(record_ids, '', shown + 1), pack('>I2', #leases), concat(leases),
        pack('>I2', #dues), concat(dues), pack('>B', #heads), concat(heads),
        pack('>B', again and 1 or 0) }), jobs > 0
end
