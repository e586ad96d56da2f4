-- Finds the problems of one job, and plans how to mend them. Pages and mends share this, so that a
-- mend checks again by the same rules. Nothing here writes.
--
-- A script sees the whole job at one instant, so its problems are real, whatever servers do between
-- pages.

-- The index after the head; an error if the record is shorter than its flags say.
local function end_of_head(record, head)
    local at = RECORD_OPTIONS_AT
    local function has(flag, bytes)
        if band(head.flags, flag) ~= 0 then
            at = at + bytes
        end
    end
    has(HAS_ATTEMPTS, 4)
    has(HAS_TTR, 6)
    has(HAS_SPAN, 6)
    has(HAS_PRIORITY, 4)
    has(HAS_KEY_TTL, 6)
    at = at + #(head.group or '')
    for _, text in ipairs({ head.key or false, head.backoff or false }) do
        if text then
            assert(unpack_struct('>I2', record, at) == #text)
            at = at + 2 + #text
        end
    end
    if head.schedule then
        assert(unpack_struct('>I2', record, at) == #head.schedule)
        at = at + 2 + #head.schedule + 10
    end
    return at
end

local FIXED_BYTES, EXPONENTIAL_BYTES = 7, 17

local function check_backoff(backoff)
    local kind = unpack_struct('>B', backoff)
    local bytes = kind == BACKOFF_FIXED and FIXED_BYTES
        or kind == BACKOFF_EXPONENTIAL and EXPONENTIAL_BYTES
        or kind == BACKOFF_LIST and 2 + 6 * unpack_struct('>B', backoff, 2)
    assert(bytes and bytes <= #backoff)
end

local function check_headers(record, at)
    local texts = 2 * unpack_struct('>I2', record, at)
    at = at + 2
    for _ = 1, texts do
        at = at + 2 + unpack_struct('>I2', record, at)
    end
    assert(at <= #record + 1)
end

local function read_whole_record(record)
    local head = read_head(record)
    local at = end_of_head(record, head)
    if head.backoff then
        check_backoff(head.backoff)
    end
    if band(head.flags, HAS_HEADERS) ~= 0 then
        check_headers(record, at)
    end
    assert(floor(head.flags / BODY_KIND) % 4 ~= 3) -- there is no such kind of body
    assert(at <= #record + 1)
    return head
end

-- The head of a record; nil = it is unreadable.
local function try_read_head(record)
    local ok, head = pcall(read_whole_record, record)
    return ok and head or nil
end

-- The progress in a text; nil = there is none, or it is unreadable.
local function try_read_progress(text)
    return text and #text >= PROGRESS_BYTES and read_progress(text) or nil
end

local function has_lost_key(p)
    return p and band(p.flags, KEY_LOST) ~= 0
end

-- Whether there is a job with this id and this key.
local function has_key(id, key)
    local record = call('HGET', J, id)
    local head = record and try_read_head(record)
    return head and head.key == key and not has_lost_key(try_read_progress(call('HGET', F, id)))
end

local function is_local_id(id)
    return #id == 8 and sub(id, 1, 3) == SHARD
end

-- Whether the header would give this id, which a job has or had, to a new job.
local function exceeds_last_number(id)
    return is_local_id(id) and number_of(id) > header[LAST_NUMBER]
end

-- Checks where the job is, and plans where it should be: at `score` in the zset of its priority, or
-- `dead`, or `apart`: done, or its letter is to be sent. In doubt it becomes ready now: a second
-- delivery is better than none.
local function check_position(found, plan, add_problem)
    local p, expected = plan.p, plan.priority
    local home, stray, places = found.scores[expected], nil, found.dead and 1 or 0
    for _, priority in ipairs(PRIORITIES) do
        local score = found.scores[priority]
        if score then
            places = places + 1
            stray = stray or priority ~= expected and score or nil
        end
    end
    local score, dead = home or stray, nil
    if places == 0 and found.apart then
        plan.apart = true
        return
    elseif places == 0 then
        add_problem('job_nowhere')
    elseif places > 1 or found.apart then
        add_problem('job_twice')
    elseif stray then
        add_problem('priority_wrong', format('%.0f', expected))
    end
    if not score then
        dead = found.dead
    end
    local at = score or dead
    local zone = at and floor(at / ZONE)
    if zone and zone > 2 and zone < 5 and plan.head.group and at == floor(at) then
        local instant = at % ZONE
        if not call('ZSCORE', Q, parked_member(plan.head.group, expected, instant, found.id, zone))
        then
            add_problem('parked_unlisted')
            score = (zone - 3) * ZONE + instant
        end
        zone = zone - 3
    end
    if zone and (zone < 0 or zone > (dead and 0 or 2) or at ~= floor(at)) then
        add_problem('score_strange', tostring(at))
        score, dead = nil, dead and now() or nil
    elseif zone and zone > 0 and not (p and band(p.flags, HELD) ~= 0) then
        if p or not found.progress then
            add_problem('lease_unheld')
        end
        score = nil
    end
    if not score and not dead then
        score = now()
    end
    if dead and not Z[expected] then
        add_problem('dead_unlisted', format('%.0f', expected))
    end
    plan.score, plan.dead = score, dead
end

-- Checks that the flags agree with where the job is. True = they have been corrected in the plan.
local function check_flags(found, plan, add_problem)
    if plan.dead and not plan.p then
        if not found.progress then
            add_problem('dead_without_progress')
        end
        plan.p = fresh_progress(plan.head)
        plan.p.kills = 1
    end
    local p = plan.p
    if not p then
        return
    end
    local zone = plan.score and floor(plan.score / ZONE) or 0
    zone = zone > 2 and zone - 3 or zone
    local flags = zone == 2 and with(p.flags, LAST) or without(p.flags, LAST)
    if zone == 0 then
        flags = without(flags, HELD)
    end
    flags = plan.head.key and with(flags, KEYED) or without(flags, KEYED)
    flags = plan.head.schedule and with(flags, TICKED) or without(flags, TICKED)
    flags = plan.head.span > 0 and with(flags, SPANNED) or without(flags, SPANNED)
    flags = plan.head.group and with(flags, GROUPED) or without(flags, GROUPED)
    if flags ~= p.flags or p.bytes ~= plan.head.bytes or p.group ~= plan.head.group then
        p.flags, p.bytes, p.group = flags, plan.head.bytes, plan.head.group
        return true
    end
end

local function check_key(found, plan, add_problem)
    local key = plan.head.key
    if not key or has_lost_key(plan.p) then
        return
    end
    local holder = call('HGET', K, key)
    if holder == found.id then
        return
    elseif holder and has_key(holder, key) then
        add_problem('key_taken', key)
        plan.p = plan.p or fresh_progress(plan.head)
        plan.p.flags = with(plan.p.flags, KEY_LOST)
    else
        add_problem('key_missing', key)
        plan.take_key = key
    end
end

-- A job that waits, or will wait again, and has a span must have an entry before its deadline.
local function check_deadline(found, plan, add_problem)
    local span, score = plan.head.span, plan.score
    if span == 0 or not score or floor(score / ZONE) == 2 then
        return
    end
    local deadline = score % ZONE + span
    if tonumber(call('ZSCORE', E, found.id) or deadline + 1) > deadline then
        add_problem('deadline_missing', format('%.0f', deadline))
    end
end

-- A leased job with a group must have its slot, as long as its lease runs.
local function check_slot(found, plan, add_problem)
    local group, score = plan.head.group, plan.score or 0
    local ends_at, zone = score % ZONE, floor(score / ZONE)
    if not group or zone < 1 or zone > 2 or ends_at <= now() then
        return
    end
    local known = tonumber(call('ZSCORE', I, group .. found.id) or nil)
    if not call('ZSCORE', G, group .. found.id) or known ~= ends_at then
        add_problem('slot_missing')
    end
    plan.slot_until = ends_at
end

-- found: id, record, head, progress (text or false), p, scores (by priority), dead (score or nil),
-- apart (whether it is done, or its letter is to be sent).
-- Returns the problems, each { kind, id, detail }, the plan that mends them, and the job's bytes.
local function check_job(found)
    local problems, id = {}, found.id
    local function add_problem(kind, detail)
        problems[#problems + 1] = { kind, id, detail or '' }
    end
    local head, p = found.head, found.p
    local plan = { head = head, p = p }
    if exceeds_last_number(id) then
        add_problem('number_low', format('%d', header[LAST_NUMBER]))
        plan.number = number_of(id)
    end
    if not head then
        add_problem('record_unreadable')
        plan.aside = true
        return problems, plan
    end
    plan.priority = p and p.priority or head.priority
    if not is_local_id(id) then
        add_problem('id_foreign')
        plan.renumber = true
    end
    if found.progress and not p then
        add_problem('progress_unreadable')
    elseif p and p.fence > header[LAST_FENCE] then
        add_problem('fence_low', format('%d', header[LAST_FENCE]))
        plan.fence = p.fence
    end
    local before = #problems
    check_position(found, plan, add_problem)
    if check_flags(found, plan, add_problem) and #problems == before then
        add_problem('progress_misfit')
    end
    check_key(found, plan, add_problem)
    check_deadline(found, plan, add_problem)
    check_slot(found, plan, add_problem)
    return problems, plan, head.bytes
end

-- Looks for the job in every zset.
local function find_everywhere(found)
    for _, priority in ipairs(PRIORITIES) do
        found.scores[priority] = tonumber(call('ZSCORE', Z[priority], found.id) or nil)
    end
end

-- Reads what check_job needs of these ids. They were found in the zset `from` (a priority, 'd', or
-- '' = not in a zset). A job that is in its own zset is not looked up in the others: if one of them
-- has it too, the page of that zset finds it.
local function find_all(ids, from)
    local list = {}
    if #ids == 0 then
        return list
    end
    local records, progress = call('HMGET', J, unpack(ids)), call('HMGET', F, unpack(ids))
    for i, id in ipairs(ids) do
        local found = { id = id, record = records[i], progress = progress[i], scores = {} }
        found.dead = tonumber(call('ZSCORE', D, id) or nil)
        found.head = found.record and try_read_head(found.record)
        found.p = try_read_progress(found.progress)
        local expected = found.p and found.p.priority or found.head and found.head.priority
        local home = expected and Z[expected] and tonumber(call('ZSCORE', Z[expected], id) or nil)
        if not home and not found.dead then
            found.apart = call('ZSCORE', O, id) or call('ZSCORE', L, id)
        end
        if from == '' or home and tonumber(from) ~= expected or not home and not found.dead then
            find_everywhere(found)
        elseif home then
            found.scores[expected] = home
        end
        list[i] = found
    end
    return list
end
