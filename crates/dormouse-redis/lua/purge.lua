-- purge: '' or the cursor of the previous answer; '' or a state; '' or how many at most. Removes
-- delayed, ready, dead and done jobs, and holds; leased jobs stay, with their keys, and those whose
-- letter is to be sent. Of a state only its jobs go, and holds stay.
-- Answers: removed I8 (without done ones, unless it is of done ones), more B, then the cursor.
--
-- If all go and few jobs are leased, UNLINK removes everything at no cost per job, and the leased
-- jobs are written back. Otherwise jobs are removed one by one, at most BATCH_JOBS_MAX per call,
-- those that were put before the purge began; a job that is moved meanwhile may stay. Schedules
-- stay, too; those that wait for a job are due then.

do
    local LEASED_MAX, SCANNED_MAX = 500, 256

    -- The leased jobs of all priorities: their ids, and per priority scores and ids for ZADD.
    local function find_leased()
        local ids, scores = {}, {}
        for _, priority in ipairs(PRIORITIES) do
            local placed = {}
            for zone = ZONE, 2 * ZONE, ZONE do
                local first = zone + now() + 1
                local list = call('ZRANGE', Z[priority], first, zone + NEVER, 'BYSCORE',
                    'WITHSCORES')
                for i = 1, #list, 2 do
                    ids[#ids + 1] = list[i]
                    placed[#placed + 1] = list[i + 1]
                    placed[#placed + 1] = list[i]
                end
            end
            scores[priority] = placed
        end
        return ids, scores
    end

    -- The numbers of jobs that are leased, whose lease has expired, and whose last lease has
    -- expired.
    local function count_leases()
        local leased, lapsed, spent = 0, 0, 0
        for _, priority in ipairs(PRIORITIES) do
            local zset = Z[priority]
            local beyond = call('ZCOUNT', zset, ZONE, 3 * ZONE - 1)
            lapsed = lapsed + call('ZCOUNT', zset, 4 * ZONE, '+inf')
            if beyond > 0 then
                local run_out = call('ZCOUNT', zset, ZONE, ZONE + now())
                local dying = call('ZCOUNT', zset, 2 * ZONE, 2 * ZONE + now())
                leased = leased + beyond - run_out - dying
                lapsed, spent = lapsed + run_out, spent + dying
            end
        end
        return leased, lapsed, spent
    end

    -- Ids and values in turn, for HSET.
    local function interleaved(ids, values)
        local list = {}
        for i = 1, #ids do
            list[2 * i - 1] = ids[i]
            list[2 * i] = values[i]
        end
        return list
    end

    local function write(command, key, list)
        if #list > 0 then
            call(command, key, unpack(list))
        end
    end

    -- The number removed; nil = the leased jobs are too large to be written back.
    local function purge_at_once(lapsed, spent)
        local ids, scores = find_leased()
        local progress = #ids > 0 and call('HMGET', F, unpack(ids)) or {}
        local bytes, keyed, spanned, slots = 0, {}, {}, {}
        for i = 1, #ids do
            local p = read_progress(progress[i])
            spanned[i] = band(p.flags, SPANNED) ~= 0 and p or nil
            bytes = bytes + p.bytes
            if p.group then
                slots[#slots + 1] = 0
                slots[#slots + 1] = p.group .. ids[i]
            end
            keyed[i] = band(p.flags, KEYED) ~= 0 and band(p.flags, KEY_LOST) == 0
        end
        if bytes > RECORD_BYTES_MAX then
            return nil
        end
        local found, keys = #ids > 0 and call('HMGET', J, unpack(ids)) or {}, {}
        for i = 1, #ids do
            if keyed[i] then
                keys[#keys + 1] = read_head(found[i]).key
                keys[#keys + 1] = ids[i]
            end
        end
        local removed = call('HLEN', J) - call('ZCARD', O) - #ids
        call('UNLINK', J, F, D, K, H, E, O, G, Q)
        for _, priority in ipairs(PRIORITIES) do
            call('UNLINK', Z[priority])
            write('ZADD', Z[priority], scores[priority])
        end
        write('HSET', J, interleaved(ids, found))
        write('HSET', F, interleaved(ids, progress))
        write('HSET', K, keys)
        write('ZADD', G, slots)
        for i, p in pairs(spanned) do
            note_rest(ids[i], p)
        end
        count(BYTES, bytes - header[BYTES])
        count(EXPIRIES, lapsed + spent)
        count(KILLS, spent)
        return removed
    end

    -- Removes holds after the first `skipped` whose jobs have numbers up to n; markers stay.
    -- Returns whether there are more, and the number to skip next time.
    local function purge_holds(n, skipped)
        local held = call('ZRANGE', H, '-inf', NEVER_TEXT, 'BYSCORE', 'LIMIT', skipped,
            BATCH_JOBS_MAX)
        for _, key in ipairs(held) do
            local id = call('HGET', K, key)
            if id and number_of(id) > n then
                skipped = skipped + 1
            else
                call('ZREM', H, key)
                if id and call('HEXISTS', J, id) == 0 then
                    call('HDEL', K, key)
                end
            end
        end
        return #held == BATCH_JOBS_MAX, skipped
    end

    -- Removes a job that is not leased. Returns the bytes that were read for it.
    local function purge_one(job, keeps_holds)
        local id, lane = job.id, job.lane
        local record, progress = call('HGET', J, id), call('HGET', F, id)
        if record and lane.priority >= 0 then
            groups.leave(group_of(record), id, lane.priority)
        end
        call('ZREM', lane.zset, id)
        if not record then
            return 0
        elseif lane.zset == O then
            local key = keeps_holds and read_head(record).key
            if key and call('HGET', K, key) == id and held_until(key) then
                call('HDEL', J, id) -- the hold goes on without the job
                call('HDEL', F, id)
                return #record
            end
            erase(id, read_head(record), progress and read_progress(progress))
            return #record
        end
        if lane.zone > 0 and lane.zone ~= 3 * ZONE then
            count(EXPIRIES, 1)
        end
        if lane.zone == 2 * ZONE then
            count(KILLS, 1)
        end
        forget(id, read_head(record), progress and read_progress(progress))
        return #record
    end

    -- All lanes of jobs that are not leased, or of a state, in the order in which they are purged.
    local function resting_lanes(state)
        if state then
            local of_state = lanes_of(state, PRIORITIES)
            for _, lane in ipairs(of_state) do
                lane.priority = lane.priority or lane.zset == O and -2 or -1
            end
            -- The cursor goes through them by rank.
            table.sort(of_state, function(a, b)
                return a.priority < b.priority or a.priority == b.priority and a.zone < b.zone
            end)
            return of_state
        end
        local lanes = { { zset = O, priority = -2, zone = 0, first = 0, last = NEVER },
            { zset = D, priority = -1, zone = 0, first = 0, last = NEVER } }
        for _, priority in ipairs(PRIORITIES) do
            for zone = 0, 4 * ZONE, ZONE do
                local last = zone % (3 * ZONE) == 0 and NEVER or now()
                lanes[#lanes + 1] = { zset = Z[priority], priority = priority, zone = zone,
                    first = zone, last = zone + last }
            end
        end
        return lanes
    end

    -- Schedules that wait for a job that is gone are due; BATCH_JOBS_MAX of them. True = there are
    -- more.
    local function settle_parked()
        local names = call('ZRANGE', T, ZONE, 2 * ZONE - 1, 'BYSCORE', 'LIMIT', 0, BATCH_JOBS_MAX)
        for _, name in ipairs(names) do
            settle_tick(name, now())
        end
        return #names == BATCH_JOBS_MAX
    end

    -- The cursor: the highest number n to remove, priority + 2 and zone of the lane, the next
    -- instant (holds: how many to skip) and id in it.
    local CURSOR = '>I5I5BI6c8'
    local HOLDS, PARKED = 4294967298, 4294967299 -- greater than all priorities
    local FIRST_ID = SHARD .. '\0\0\0\0\0'

    local function purge_some(cursor, state, most)
        local n, rank, zone, at, id = unpack_struct(CURSOR, cursor)
        local removed, done, scanned, bytes = 0, 0, 0, 0
        if rank == PARKED then
            return 0, settle_parked() and cursor or nil
        end
        if rank < HOLDS then
            for _, lane in ipairs(resting_lanes(state)) do
                local lane_rank, lane_zone = lane.priority + 2, lane.zone / ZONE
                if lane_rank > rank or lane_rank == rank and lane_zone >= zone then
                    if lane_rank ~= rank or lane_zone ~= zone then
                        rank, zone, at, id = lane_rank, lane_zone, 0, FIRST_ID
                    end
                    for _, job in ipairs(merged({ lane }, at, id, SCANNED_MAX - scanned)) do
                        if removed >= most then
                            return removed, not state and pack(CURSOR, n, HOLDS, 0, 0, FIRST_ID)
                                or nil
                        end
                        if removed + done >= BATCH_JOBS_MAX or bytes > RECORD_BYTES_MAX then
                            return removed, pack(CURSOR, n, rank, zone, job.at, job.id)
                        end
                        scanned = scanned + 1
                        at, id = job.at, SHARD .. pack('>I5', number_of(job.id) + 1)
                        if number_of(job.id) <= n then
                            bytes = bytes + purge_one(job, state)
                            local counts = state or lane.zset ~= O
                            removed = removed + (counts and 1 or 0)
                            done = done + (counts and 0 or 1)
                        end
                    end
                    if scanned >= SCANNED_MAX then
                        return removed, pack(CURSOR, n, rank, zone, at, id)
                    end
                end
            end
            if state then
                return removed, nil
            end
            at = 0
        end
        local more, skipped = purge_holds(n, at)
        return removed, more and pack(CURSOR, n, HOLDS, 0, skipped, FIRST_ID) or nil
    end

    verbs.purge = function(at)
        local cursor, state, most = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
        if cursor == '' then
            if call('EXISTS', J, H) == 0 then
                return pack('>I8B', 0, 0), false
            end
            if ARGV[9] ~= '' or ARGV[10] ~= '' or state then
                sweep() -- dead jobs that the settings do not keep do not count as removed
            end
            local leased, lapsed, spent = count_leases()
            local removed = not state and not most and leased <= LEASED_MAX
                and call('EXISTS', L) == 0 and purge_at_once(lapsed, spent)
            if removed then
                local more = settle_parked()
                return pack('>I8B', removed, more and 1 or 0)
                    .. (more and pack(CURSOR, 0, PARKED, 0, 0, FIRST_ID) or ''), true
            end
            cursor = pack(CURSOR, header[LAST_NUMBER], 0, 0, 0, FIRST_ID)
        end
        local removed, next_cursor = purge_some(cursor, state, most or math.huge)
        return pack('>I8B', removed, next_cursor and 1 or 0) .. (next_cursor or ''), true
    end
end
