-- Mends. Each checks again first: the problem may have gone since, or been mended by a call whose
-- answer was lost. All answer what they mended: kind, subject, ''; or 'needs', id, priority: g must
-- have that priority first.
--
-- mend_jobs: ids. mend_keys: keys. mend_locks, mend_schedules: names. mend_groups: members of g or
-- q. mend_state: the greatest
-- number found I8.
-- mend_config: v, g. mend_bytes: header at the time of the sum, the sum I8.

local X = KEYS[#KEYS] -- unreadable records

local function remove_from_zsets(found)
    for priority in pairs(found.scores) do
        call('ZREM', Z[priority], found.id)
    end
    for _, zset in ipairs({ D, E, O, L }) do
        call('ZREM', zset, found.id)
    end
end

-- Without a record there is no job: removes what else there is of it.
local function remove_orphan(found)
    local mended = {}
    local is_placed = next(found.scores) or found.dead or found.apart
        or call('ZSCORE', E, found.id)
    if is_placed then
        remove_from_zsets(found)
        mended[#mended + 1] = { 'orphan_place', found.id, '' }
    end
    if found.progress then
        call('HDEL', F, found.id)
        mended[#mended + 1] = { 'orphan_progress', found.id, '' }
    end
    return mended
end

-- An unreadable record makes every script fail that reads it: it is moved to where none does.
local function set_aside(found)
    call('HSET', X, found.id, found.record)
    remove_from_zsets(found)
    call('HDEL', J, found.id)
    call('HDEL', F, found.id)
end

-- A job whose id belongs to another partition can be reserved, but neither acked nor found: it gets
-- a new id.
local function renumber(found, plan)
    local n = header[LAST_NUMBER] + 1
    local id = SHARD .. pack('>I5', n)
    set(LAST_NUMBER, n)
    remove_from_zsets(found)
    call('HDEL', J, found.id)
    call('HDEL', F, found.id)
    call('HSET', J, id, found.record)
    local key = plan.head.key
    if key and not has_lost_key(plan.p) then
        plan.take_key = key
    end
    if plan.score and plan.score >= ZONE then
        plan.score = now()
        plan.p.flags = without(without(plan.p.flags, HELD), LAST)
    end
    found.id, found.scores, found.dead, found.progress = id, {}, nil, false
    if plan.apart then
        plan.apart, plan.score = nil, now()
    end
end

-- Moves the job to where the plan says, and removes it everywhere else.
local function move_job(found, plan)
    if plan.apart then
        return
    end
    call('ZREM', O, found.id)
    call('ZREM', L, found.id)
    if plan.score and floor(plan.score / ZONE) ~= 2 then
        note_deadline(found.id, plan.head.span, plan.score % ZONE)
    end
    local zset = plan.score and Z[plan.priority] or D
    for priority, score in pairs(found.scores) do
        if Z[priority] ~= zset or score ~= plan.score then
            call('ZREM', Z[priority], found.id)
        end
    end
    if found.dead and zset ~= D then
        call('ZREM', D, found.id)
    end
    call('ZADD', zset, plan.score or plan.dead, found.id)
    if plan.slot_until then
        groups.lease(plan.head.group, found.id, plan.slot_until)
        groups.note_look(plan.slot_until)
    end
    if plan.score and plan.score < ZONE then
        wake(plan.score)
    elseif plan.score and plan.score < 2 * ZONE then
        note_expiry(plan.score - ZONE)
    end
end

-- Raises the last number and fence, so that none is given twice.
local function raise_header(plan)
    if plan.number then
        set(LAST_NUMBER, max(header[LAST_NUMBER], plan.number))
    end
    if plan.fence then
        set(LAST_FENCE, max(header[LAST_FENCE], plan.fence))
    end
end

local function mend_job(id)
    local found = find_all({ id }, '')[1]
    if not found.record then
        return remove_orphan(found)
    end
    local problems, plan = check_job(found)
    if #problems == 0 then
        return problems
    elseif plan.aside then
        raise_header(plan)
        set_aside(found)
        return problems
    elseif not Z[plan.priority] then
        return { { 'needs', id, format('%.0f', plan.priority) } }
    end
    raise_header(plan)
    if plan.renumber then
        renumber(found, plan)
    end
    move_job(found, plan)
    if plan.p then
        call('HSET', F, found.id, write_progress(plan.p))
    elseif found.progress then
        call('HDEL', F, found.id)
    end
    if plan.take_key then
        call('HSET', K, plan.take_key, found.id)
        call('ZREM', H, plan.take_key)
    end
    return problems
end

verbs.mend_jobs = function(at, arguments)
    local answer = {}
    for i = at, at + arguments - 1 do
        add(answer, mend_job(ARGV[i]))
    end
    return answer
end

-- Slots and parked entries of no job are removed.
verbs.mend_groups = function(at, arguments)
    local answer = {}
    for i = at, at + arguments - 1 do
        local entry = ARGV[i]
        if call('ZSCORE', G, entry) and is_orphan_slot(entry) then
            call('ZREM', G, entry)
            call('ZREM', I, entry)
            add(answer, { { 'orphan_slot', entry, '' } })
        elseif call('ZSCORE', Q, entry) and is_orphan_parked(entry) then
            call('ZREM', Q, entry)
            add(answer, { { 'orphan_parked', entry, '' } })
        end
    end
    set(LOOK_AT, 0)
    return answer
end

-- A schedule without an instant is due; one without a record is none.
verbs.mend_schedules = function(at, arguments)
    local answer = {}
    for i = at, at + arguments - 1 do
        local name = ARGV[i]
        local is_there, score = call('HEXISTS', N, name) == 1, call('ZSCORE', T, name)
        if is_there and not score then
            call('ZADD', T, now(), name)
            add(answer, { { 'schedule_untimed', name, '' } })
        elseif score and not is_there then
            call('ZREM', T, name)
            add(answer, { { 'orphan_tick', name, '' } })
        end
    end
    return answer
end

verbs.mend_keys = function(at, arguments)
    local answer = {}
    for i = at, at + arguments - 1 do
        local key = ARGV[i]
        local id = call('HGET', K, key)
        if id and exceeds_last_number(id) then
            set(LAST_NUMBER, number_of(id))
            add(answer, { { 'key_number_low', key, '' } })
        end
        if id and is_orphan_key(key, id) then
            call('HDEL', K, key)
            add(answer, { { 'orphan_key', key, '' } })
        elseif not id and call('ZREM', H, key) == 1 then
            add(answer, { { 'orphan_hold', key, '' } })
        end
    end
    return answer
end

-- A lock that is unreadable or has no expiry counts as free: it is removed.
verbs.mend_locks = function(at, arguments)
    local answer = {}
    for i = at, at + arguments - 1 do
        local name = ARGV[i]
        local text = call('HGET', J, name)
        local kind = text and check_lock(name, text)
            or not text and call('ZSCORE', D, name) and 'orphan_place'
        if kind == 'fence_low' then
            set(LAST_FENCE, unpack_struct('>I8', text))
        elseif kind then
            call('HDEL', J, name)
            call('ZREM', D, name)
        end
        if kind then
            add(answer, { { kind, name, '' } })
        end
    end
    return answer
end

-- The script that repairs the header raises the last number too: servers continue at once.
verbs.mend_state = function(at)
    local answer, number = {}, unpack_struct('>I8', ARGV[at])
    local late, first = late_lease_end()
    if late then
        set(LEASE_END, first)
        add(answer, { { 'lease_end_late', '', '' } })
    end
    local is_late, deadline = late_deadline()
    if is_late then
        set(DEADLINE, deadline)
        add(answer, { { 'deadline_late', '', '' } })
    end
    if #invalid_fields > 0 then
        header[CHANGED] = true
        add(answer, { { 'books_unreadable', '', '' } })
    end
    if number > header[LAST_NUMBER] then
        set(LAST_NUMBER, number)
    end
    return answer
end

verbs.mend_config = function(at)
    call('HSET', S, 'v', ARGV[at], 'g', ARGV[at + 1])
    return {}
end

-- Only if no job was added or removed since the sum was made.
verbs.mend_bytes = function(at)
    local seen = { unpack_struct(HEADER, ARGV[at]) }
    for _, which in ipairs({ PUTS, ACKS, CANCELS, BYTES }) do
        if seen[which] ~= header[which] then
            return {}
        end
    end
    set(BYTES, unpack_struct('>I8', ARGV[at + 1]))
    return { 'bytes_wrong', '', '' }
end
