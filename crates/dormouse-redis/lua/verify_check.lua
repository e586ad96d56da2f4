-- What is wrong with one job, and how it ought to be. Pages and mends share this, so a mend looks
-- again with the same eyes. Nothing here writes.
--
-- Every script sees all of a job at one instant, so what it finds wrong is wrong, whatever servers do
-- between pages.

-- Where what only servers read begins; an error if there is less than the flags say.
local function end_of_head(record, head)
    local at = 13
    local function has(flag, bytes)
        if band(head.flags, flag) ~= 0 then
            at = at + bytes
        end
    end
    has(HAS_ATTEMPTS, 4)
    has(HAS_TTR, 6)
    has(HAS_PRIORITY, 4)
    has(HAS_KEY_TTL, 6)
    for _, text in ipairs({ head.key or false, head.backoff or false }) do
        if text then
            assert(unpack_struct('>I2', record, at) == #text)
            at = at + 2 + #text
        end
    end
    return at
end

local function check_backoff(backoff)
    local kind = unpack_struct('>B', backoff)
    local bytes = kind == BACKOFF_FIXED and 7 or kind == BACKOFF_EXPONENTIAL and 17
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
    assert(floor(head.flags / 256) % 4 ~= 3) -- no body is of that kind
    assert(at <= #record + 1)
    return head
end

-- The head of a record; nil = nobody can read it.
local function readable(record)
    local ok, head = pcall(read_whole_record, record)
    return ok and head or nil
end

-- The progress of a text; nil = there is none, or nobody can read it.
local function readable_progress(text)
    return text and #text >= PROGRESS_BYTES and read_progress(text) or nil
end

local function has_lost_key(p)
    return p and band(p.flags, KEY_LOST) ~= 0
end

-- Whether there is a job of this id that has this key.
local function has_key(id, key)
    local record = call('HGET', J, id)
    local head = record and readable(record)
    return head and head.key == key and not has_lost_key(readable_progress(call('HGET', F, id)))
end

local function is_of_here(id)
    return #id == 8 and sub(id, 1, 3) == SHARD
end

-- Whether this id is still to be given, by the header, though there is somebody who has it or had it.
local function is_ahead(id)
    return is_of_here(id) and number_of(id) > header[LAST_NUMBER]
end

-- Where the job is, and where it ought to be: at `score` in the zset of its priority, or `dead`. When
-- in doubt it is ready now: delivered twice is better than never.
local function judge_place(found, plan, bad)
    local p, wanted = plan.p, plan.priority
    local home, stray, places = found.scores[wanted], nil, found.dead and 1 or 0
    for _, priority in ipairs(PRIORITIES) do
        local score = found.scores[priority]
        if score then
            places = places + 1
            stray = stray or priority ~= wanted and score or nil
        end
    end
    local score, dead = home or stray, nil
    if places == 0 then
        bad('job_nowhere')
    elseif places > 1 then
        bad('job_twice')
    elseif stray then
        bad('priority_wrong', format('%.0f', wanted))
    end
    if not score then
        dead = found.dead
    end
    local at = score or dead
    local zone = at and floor(at / ZONE)
    if zone and (zone < 0 or zone > (dead and 0 or 2) or at ~= floor(at)) then
        bad('score_strange', tostring(at))
        score, dead = nil, dead and now() or nil
    elseif zone and zone > 0 and not (p and band(p.flags, HELD) ~= 0) then
        if p or not found.progress then
            bad('lease_unheld')
        end
        score = nil
    end
    if not score and not dead then
        score = now()
    end
    if dead and not Z[wanted] then
        bad('dead_unlisted', format('%.0f', wanted))
    end
    plan.score, plan.dead = score, dead
end

-- Flags that say where the job is must say it right.
local function judge_flags(found, plan, bad)
    if plan.dead and not plan.p then
        if not found.progress then
            bad('dead_without_progress')
        end
        plan.p = fresh_progress(plan.head)
        plan.p.kills = 1
    end
    local p = plan.p
    if not p then
        return
    end
    local zone = plan.score and floor(plan.score / ZONE) or 0
    local flags = zone == 2 and with(p.flags, LAST) or without(p.flags, LAST)
    if zone == 0 then
        flags = without(flags, HELD)
    end
    flags = plan.head.key and with(flags, KEYED) or without(flags, KEYED)
    if flags ~= p.flags or p.bytes ~= plan.head.bytes then
        p.flags, p.bytes = flags, plan.head.bytes
        return true
    end
end

local function judge_key(found, plan, bad)
    local key = plan.head.key
    if not key or has_lost_key(plan.p) then
        return
    end
    local holder = call('HGET', K, key)
    if holder == found.id then
        return
    elseif holder and has_key(holder, key) then
        bad('key_taken', key)
        plan.p = plan.p or fresh_progress(plan.head)
        plan.p.flags = with(plan.p.flags, KEY_LOST)
    else
        bad('key_missing', key)
        plan.take_key = key
    end
end

-- found: id, record, head, progress (text or false), p, scores (by priority), dead (score or nil).
-- Gives the problems, each { kind, id, detail }, and the plan that ends them.
local function judge(found)
    local problems, id = {}, found.id
    local function bad(kind, detail)
        problems[#problems + 1] = { kind, id, detail or '' }
    end
    local head, p = found.head, found.p
    local plan = { head = head, p = p }
    if is_ahead(id) then
        bad('number_low', format('%d', header[LAST_NUMBER]))
        plan.number = number_of(id)
    end
    if not head then
        bad('record_unreadable')
        plan.aside = true
        return problems, plan
    end
    plan.priority = p and p.priority or head.priority
    if not is_of_here(id) then
        bad('id_foreign')
        plan.renumber = true
    end
    if found.progress and not p then
        bad('progress_unreadable')
    elseif p and p.fence > header[LAST_FENCE] then
        bad('fence_low', format('%d', header[LAST_FENCE]))
        plan.fence = p.fence
    end
    local before = #problems
    judge_place(found, plan, bad)
    if judge_flags(found, plan, bad) and #problems == before then
        bad('progress_misfit')
    end
    judge_key(found, plan, bad)
    return problems, plan, head.bytes
end

-- Looks for the job in every zset. In most it is not, and in small ones that is a search.
local function find_everywhere(found)
    for _, priority in ipairs(PRIORITIES) do
        found.scores[priority] = tonumber(call('ZSCORE', Z[priority], found.id) or nil)
    end
end

-- Reads what `judge` wants to know of these ids. They were found in the zset `from` (a priority, 'd',
-- or '' = not in a zset): who is where it belongs is looked for nowhere else, as it would be met there.
local function find_all(ids, from)
    local list = {}
    if #ids == 0 then
        return list
    end
    local records, progress = call('HMGET', J, unpack(ids)), call('HMGET', F, unpack(ids))
    for i, id in ipairs(ids) do
        local found = { id = id, record = records[i], progress = progress[i], scores = {} }
        found.dead = tonumber(call('ZSCORE', D, id) or nil)
        found.head = found.record and readable(found.record)
        found.p = readable_progress(found.progress)
        local wanted = found.p and found.p.priority or found.head and found.head.priority
        local home = wanted and Z[wanted] and tonumber(call('ZSCORE', Z[wanted], id) or nil)
        if from == '' or home and tonumber(from) ~= wanted or not home and not found.dead then
            find_everywhere(found)
        elseif home then
            found.scores[wanted] = home
        end
        list[i] = found
    end
    return list
end
