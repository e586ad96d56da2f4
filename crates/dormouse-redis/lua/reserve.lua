-- reserve: most jobs, ttr ('' = each job's own), most bytes of records, bound ('' or priority I4,
-- due I6, id c8: only what is given before that), waits ('1' = who asks will wait for the rest).
-- Answers: paused until I6 (0 = not), lease end I6 (none ends before; 0 = none), number of jobs I2,
-- per job: id c8, fence I8, attempt I4, due I6, expires_at I6, ttr I6, priority I4, flags B;
-- number of heads B, per priority looked at: priority I4, due I6 (0 = none), id c8.

-- Bytes of the largest job there can be: an answer stops where one more might not fit.
local JOB_BYTES_MAX = 1048576 + 4096 + 256

-- A fence is greater than all that the partition gave before it, also after a failover that lost the
-- last ones, as long as the clock of the new primary is not behind.
local function next_fence()
    local fence = max(tonumber(state.q or 0) + 1, now() * 2048)
    set('q', fence)
    return fence
end

-- Those of a priority that are visible, in order, and the first that is not yet.
local function visible(priority, most)
    local waiting = call('ZRANGE', Z[priority], 0, NEVER, 'BYSCORE', 'LIMIT', 0, most + 1, 'WITHSCORES')
    local lapsed = {}
    local first_end = tonumber(state.e)
    if first_end and first_end <= now() then
        lapsed = call('ZRANGE', Z[priority], ZONE, ZONE + now(), 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
    end
    local list, next_due, next_id = {}, nil, nil
    local i, j = 1, 1
    while #list < most do
        local a, b = waiting[i], lapsed[j]
        local a_due, b_due = a and tonumber(waiting[i + 1]), b and tonumber(lapsed[j + 1]) - ZONE
        if a and a_due > now() then
            a = nil
        end
        if not a and not b then
            break
        elseif a and (not b or a_due < b_due or a_due == b_due and is_before(a, b)) then
            list[#list + 1] = { id = a, due = a_due }
            i = i + 2
        else
            list[#list + 1] = { id = b, due = b_due, lapsed = true }
            j = j + 2
        end
    end
    next_due, next_id = tonumber(waiting[i + 1]), waiting[i]
    if lapsed[j] then
        local due = tonumber(lapsed[j + 1]) - ZONE
        if not next_due or due < next_due or due == next_due and is_before(lapsed[j], next_id) then
            next_due, next_id = due, lapsed[j]
        end
    end
    return list, next_due, next_id, #lapsed
end

-- Whether a job is given before the bound.
local function before(priority, job, bound)
    if not bound then
        return true
    elseif priority ~= bound.priority then
        return priority < bound.priority
    elseif job.due ~= bound.due then
        return job.due < bound.due
    end
    return is_before(job.id, bound.id)
end

-- Leases one job: what is to be written goes to the lists. Nil = there is no such job.
local function grant(job, priority, record, progress, ttr, scores, taken)
    if not record then
        call('ZREM', Z[priority], job.id)
        return nil
    end
    local head = read_head(record)
    local p = progress and read_progress(progress) or fresh_progress(head)
    p.priority = priority
    p.fence = next_fence()
    p.attempts = p.attempts + 1
    p.reserves = p.reserves + 1
    p.ttr = ttr or head.ttr
    if job.lapsed then
        p.expiries = p.expiries + 1
        count(EXPIRIES, 1)
    end
    local last = head.attempts_max ~= 0 and p.attempts >= head.attempts_max
    p.flags = without(with(p.flags, HELD), RESUMED)
    p.flags = last and with(p.flags, LAST) or without(p.flags, LAST)
    local expires_at = after(p.ttr)
    if not last then
        note_expiry(expires_at)
        wake(expires_at)
    end
    scores[#scores + 1] = (last and 2 or 1) * ZONE + expires_at
    scores[#scores + 1] = job.id
    taken[#taken + 1] = job.id
    taken[#taken + 1] = write_progress(p)
    show(job.id, record)
    return pack('>c8I8I4I6I6I6I4B', job.id, p.fence, p.attempts, job.due, expires_at, p.ttr, priority,
        p.flags), head.bytes
end

-- Leases jobs for the first time that have no key, ttr or most attempts of their own, as most have
-- none. All but id, fence and due time is the same for them, so it is packed once.
local OWN = HAS_KEY + HAS_ATTEMPTS + HAS_TTR
local function first_lease(priority, ttr, scores, taken)
    local expires_at = after(ttr)
    note_expiry(expires_at)
    wake(expires_at)
    local score = string.format('%.0f', ZONE + expires_at)
    local progress, dues = {}, {} -- what follows the fence, by bytes; attempt and due time, by due time
    local tail = pack('>I6I6I4B', expires_at, ttr, priority, HELD)
    return function(job, record, bytes)
        local id, due, fence = job.id, job.due, pack('>I8', next_fence())
        local p = progress[bytes]
        if not p then
            p = pack('>I4I4I4I4I4I4I4I4I6B', 1, priority, 1, 0, 0, 0, 0, bytes, ttr, HELD)
            progress[bytes] = p
        end
        local when = dues[due]
        if not when then
            when = pack('>I4I6', 1, due)
            dues[due] = when
        end
        local n = #scores
        scores[n + 1], scores[n + 2] = score, id
        taken[n + 1], taken[n + 2] = id, fence .. p
        show(id, record)
        return id .. fence .. when .. tail, bytes
    end
end

-- Leases from one priority: what is given, how much is left to give.
local function take(priority, list, left, ttr, room, given)
    local ids = {}
    for i = 1, #list do
        ids[i] = list[i].id
    end
    local progress, found, read = call('HMGET', F, unpack(ids)), {}, 0
    local scores, taken, i, bytes_read = {}, {}, 0, 0
    local lease
    while i < #list and left > 0 and room > 0 do
        i = i + 1
        if i > read then
            -- Bodies may be large: no more are read than the answer has room for, or hardly more. If
            -- they have been small so far, the rest is read at once.
            local last = (read == 0 or bytes_read > 65536) and min(read + 16, #ids) or #ids
            local records_read = call('HMGET', J, unpack(ids, read + 1, last))
            for k = 1, #records_read do
                found[read + k] = records_read[k]
                bytes_read = bytes_read + (records_read[k] and #records_read[k] or 0)
            end
            read = last
        end
        local job, record, text, bytes, flags = list[i], found[i], nil, nil, OWN
        if record and not progress[i] and not job.lapsed then
            bytes, flags = unpack_struct('>I4I2', record, 7)
        end
        if band(flags, OWN) == 0 then
            lease = lease or first_lease(priority, ttr or 60000, scores, taken)
            text = lease(job, record, bytes)
        else
            text, bytes = grant(job, priority, record, progress[i], ttr, scores, taken)
        end
        if text then
            given[#given + 1] = text
            left = left - 1
            room = room - bytes
        end
    end
    if #scores > 0 then
        call('ZADD', Z[priority], unpack(scores))
        call('HSET', F, unpack(taken))
    end
    return left, room, i
end

-- The earliest end of a lease, looked up.
local function find_lease_end()
    local first
    for _, priority in ipairs(PRIORITIES) do
        local head = call('ZRANGE', Z[priority], ZONE, 2 * ZONE - 1, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
        if head[1] then
            local at = tonumber(head[2]) - ZONE
            first = first and min(first, at) or at
        end
    end
    set('e', first or NEVER)
end

verbs.reserve = function(at)
    local left, ttr, room = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
    local bound
    if ARGV[at + 3] ~= '' then
        bound = {}
        bound.priority, bound.due, bound.id = unpack_struct('>I4I6c8', ARGV[at + 3])
    end
    room = room - JOB_BYTES_MAX
    local paused = tonumber(state.u or 0)
    if paused <= now() then
        paused = 0
    end
    local given, heads, lapsed, next_at = {}, {}, 0, nil
    if paused == 0 then
        for _, priority in ipairs(PRIORITIES) do
            if left <= 0 or room <= 0 then
                break
            end
            local list, due, id, seen = visible(priority, left)
            local wanted, beyond = {}, false
            for i = 1, #list do
                if not before(priority, list[i], bound) then
                    due, id = list[i].due, list[i].id
                    beyond = true
                    break
                end
                wanted[i] = list[i]
            end
            lapsed = lapsed + seen
            if #wanted > 0 then
                local passed
                left, room, passed = take(priority, wanted, left, ttr, room, given)
                if passed < #wanted then
                    due, id = wanted[passed + 1].due, wanted[passed + 1].id
                end
            end
            heads[#heads + 1] = pack('>I4I6c8', priority, due or 0, id or '\0\0\0\0\0\0\0\0')
            if due then
                next_at = next_at and min(next_at, due) or due
            end
            if beyond then
                break
            end
        end
    end
    -- A bound for the ends of leases that is past, though no lease has ended, is too low.
    local lease_end = tonumber(state.e)
    if paused == 0 and lease_end and lease_end <= now() and lapsed == 0 and left > 0 and room > 0 then
        find_lease_end()
        lease_end = state.e
    end
    if #given > 0 then
        count(RESERVES, #given)
    end
    if ARGV[at + 4] == '1' then
        local sleep = paused > 0 and paused or min(next_at or NEVER, lease_end or NEVER)
        if tonumber(state.w) ~= sleep then
            set('w', sleep)
        end
    end
    return pack('>I6I6I2', min(paused, NEVER), min(lease_end or 0, NEVER), #given) .. concat(given)
        .. pack('>B', #heads) .. concat(heads), #given > 0
end
