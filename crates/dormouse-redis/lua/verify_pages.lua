-- Checks a partition page by page. All answers end with problems: kind, subject, detail each.
--
-- look: priorities not in g (u32 each). Answers I8 each: delayed, ready, leased, dead, keys, holds,
--   jobs, progress.
-- tally: answers the header, jobs I8, ids in all zsets I8.
-- places: 'd' or a priority; cursor, count. Answers cursor; ids, each with the bytes of its record;
--   ''.
-- jobs: 'd' or a priority, ids found there. Answers the bytes of these jobs, as counted, I8.
-- strays: cursor, count. Answers cursor. Reads every record, for jobs that are in no zset.
-- keys: cursor, count. Answers cursor; keys of jobs, each with the bytes of its record; ''.
-- keys_of: keys of jobs. Answers problems only.
-- progress, holds, locks, lock_ends, deadlines, done, letters, ticks, schedules, slots, parked:
--   cursor, count. Answer cursor.
-- numbers: 'j' or 'k'; cursor, count. Answers cursor; the greatest number of an id there I8,
--   entries I8, bytes that were read I8.
-- sample: answers the id of any job, or ''.
--
-- The caller passes ids and keys in portions for which a script reads few bytes of records.

local PARKED_BYTES = 19 -- of a member of q after the group

local function add(answer, problems)
    for _, problem in ipairs(problems) do
        for i = 1, 3 do
            answer[#answer + 1] = problem[i]
        end
    end
    return answer
end

-- The earliest expiry of a lease after which its job is ready.
local function first_lease_end()
    local first
    for _, priority in ipairs(PRIORITIES) do
        local head = call('ZRANGE', Z[priority], ZONE, 2 * ZONE - 1, 'BYSCORE', 'LIMIT', 0, 1,
            'WITHSCORES')
        if head[1] then
            first = min(first or NEVER, tonumber(head[2]) - ZONE)
        end
    end
    return first
end

-- Whether LEASE_END is later than the first expiry, and that expiry.
local function late_lease_end()
    local first = first_lease_end()
    return first and header[LEASE_END] > first, first
end

-- Whether DEADLINE is later than the first deadline, and that one.
local function late_deadline()
    local first = tonumber(call('ZRANGE', E, 0, 0, 'WITHSCORES')[2] or nil)
    return first and header[DEADLINE] > first, first
end

verbs.look = function(at)
    local delayed, ready, leased, dead = 0, 0, 0, call('ZCARD', D)
    for _, priority in ipairs(PRIORITIES) do
        local zset = Z[priority]
        local due = call('ZCOUNT', zset, '-inf', now())
        local waiting = call('ZCOUNT', zset, '-inf', NEVER)
        local run_out = call('ZCOUNT', zset, ZONE, ZONE + now())
        local dying = call('ZCOUNT', zset, 2 * ZONE, 2 * ZONE + now())
        local parked = call('ZCOUNT', zset, 3 * ZONE, '+inf')
        ready, delayed, dead = ready + due + run_out + parked, delayed + waiting - due, dead + dying
        leased = leased + call('ZCARD', zset) - waiting - run_out - dying - parked
    end
    local answer = { pack('>I8I8I8I8I8I8I8I8I8', delayed, ready, leased, dead, call('HLEN', K),
        call('ZCARD', H), call('HLEN', J), call('HLEN', F),
        call('ZCOUNT', D, format('(%.0f', now()), '+inf')) }
    local problems = {}
    for i = 1, #ARGV[at], 4 do
        local priority = unpack_struct('>I4', ARGV[at], i)
        if call('EXISTS', Z[priority]) == 1 then
            problems[#problems + 1] = { 'priority_unlisted', format('%.0f', priority), '' }
        end
    end
    if late_lease_end() then
        problems[#problems + 1] = { 'lease_end_late', '', format('%d', header[LEASE_END]) }
    end
    if late_deadline() then
        problems[#problems + 1] = { 'deadline_late', '', format('%d', header[DEADLINE]) }
    end
    if #invalid_fields > 0 then
        problems[#problems + 1] = { 'books_unreadable', '', concat(invalid_fields, ', ') }
    end
    return add(answer, problems)
end

-- A page of a hash: cursor, fields, values.
local function scan(key, at)
    local reply = call('HSCAN', key, ARGV[at], 'COUNT', ARGV[at + 1])
    local fields, values = {}, {}
    for i = 1, #reply[2], 2 do
        fields[#fields + 1] = reply[2][i]
        values[#values + 1] = reply[2][i + 1]
    end
    return reply[1], fields, values
end

verbs.tally = function()
    local placed = call('ZCARD', D)
    for _, priority in ipairs(PRIORITIES) do
        placed = placed + call('ZCARD', Z[priority])
    end
    local jobs = call('HLEN', J) - call('ZCARD', O) - call('ZCARD', L)
    return { pack(HEADER, unpack(header)), pack('>I8', jobs), pack('>I8', placed) }
end

-- A header field that is too low for many jobs is one problem: only the worst case is answered.
local function keep_worst(worst, value, problem)
    local before = worst[problem[1]]
    if not before or value > before.value then
        worst[problem[1]] = { value = value, problem = problem }
    end
end

-- The problems of these jobs, and the sum of their bytes.
local function check_jobs(list)
    local counted_bytes, worst, problems = 0, {}, {}
    for _, found in ipairs(list) do
        if found.record then
            local wrong, _, bytes = check_job(found)
            counted_bytes = counted_bytes + (bytes or 0)
            for _, problem in ipairs(wrong) do
                if problem[1] == 'number_low' then
                    keep_worst(worst, number_of(found.id), problem)
                elseif problem[1] == 'fence_low' then
                    keep_worst(worst, found.p.fence, problem)
                else
                    problems[#problems + 1] = problem
                end
            end
        end
    end
    for _, low in pairs(worst) do
        problems[#problems + 1] = low.problem
    end
    return problems, counted_bytes
end

verbs.jobs = function(at, arguments)
    local ids = {}
    for i = at + 1, at + arguments - 1 do
        ids[#ids + 1] = ARGV[i]
    end
    local problems, bytes = check_jobs(find_all(ids, ARGV[at]))
    return add({ pack('>I8', bytes) }, problems)
end

verbs.strays = function(at)
    local cursor, ids = scan(J, at)
    return add({ cursor }, (check_jobs(find_all(ids, ''))))
end

-- Problems for the names in a list that are not in a hash.
local function missing_in(key, list, kind, detail)
    local problems = {}
    for _, name in ipairs(list) do
        if call('HEXISTS', key, name) == 0 then
            problems[#problems + 1] = { kind, name, detail }
        end
    end
    return problems
end

-- A page of a zset: cursor, members.
local function members(zset, at)
    local reply = call('ZSCAN', zset, ARGV[at], 'COUNT', ARGV[at + 1])
    local list = {}
    for i = 1, #reply[2], 2 do
        list[#list + 1] = reply[2][i]
    end
    return reply[1], list
end

verbs.places = function(at)
    local which = ARGV[at]
    local cursor, ids = members(which == 'd' and D or Z[tonumber(which)], at + 1)
    local answer, problems = { cursor }, {}
    for _, id in ipairs(ids) do
        local bytes = call('HSTRLEN', J, id)
        if bytes > 0 then
            answer[#answer + 1] = id
            answer[#answer + 1] = pack('>I8', bytes)
        elseif call('HEXISTS', J, id) == 0 then
            problems[#problems + 1] = { 'orphan_place', id, which }
        else
            problems[#problems + 1] = { 'record_unreadable', id, '' }
        end
    end
    answer[#answer + 1] = ''
    return add(answer, problems)
end

verbs.progress = function(at)
    local cursor, ids = scan(F, at)
    return add({ cursor }, missing_in(J, ids, 'orphan_progress', ''))
end

-- Whether neither the job that the key names nor a hold has it.
local function is_orphan_key(key, id)
    return not has_key(id, key) and not call('ZSCORE', H, key)
end

-- Checks a key without a job, which is often held: its id was given, so LAST_NUMBER must not be
-- lower.
local function check_jobless_key(key, id, worst, problems)
    if exceeds_last_number(id) then
        keep_worst(worst, number_of(id),
            { 'key_number_low', key, format('%d', header[LAST_NUMBER]) })
    end
    if is_orphan_key(key, id) then
        problems[#problems + 1] = { 'orphan_key', key, id }
    end
end

verbs.keys = function(at)
    local cursor, keys, ids = scan(K, at)
    local answer, worst, problems = { cursor }, {}, {}
    for i, key in ipairs(keys) do
        local bytes = call('HSTRLEN', J, ids[i])
        if bytes > 0 then
            answer[#answer + 1] = key
            answer[#answer + 1] = pack('>I8', bytes)
        else
            check_jobless_key(key, ids[i], worst, problems)
        end
    end
    for _, low in pairs(worst) do
        problems[#problems + 1] = low.problem
    end
    answer[#answer + 1] = ''
    return add(answer, problems)
end

verbs.keys_of = function(at, arguments)
    local problems = {}
    for i = at, at + arguments - 1 do
        local id = call('HGET', K, ARGV[i])
        if id and is_orphan_key(ARGV[i], id) then
            problems[#problems + 1] = { 'orphan_key', ARGV[i], id }
        end
    end
    return add({}, problems)
end

verbs.holds = function(at)
    local cursor, keys = members(H, at)
    return add({ cursor }, missing_in(K, keys, 'orphan_hold', ''))
end

-- Ids of jobs in zsets beside those of priorities.
for name, zset in pairs({ deadlines = E, done = O, letters = L }) do
    verbs[name] = function(at)
        local cursor, ids = members(zset, at)
        return add({ cursor }, missing_in(J, ids, 'orphan_place', name))
    end
end

-- Whether no leased job of the group has this slot, or no job is parked so.
local function is_orphan_slot(slot)
    local id, group = sub(slot, -8), sub(slot, 1, -9)
    local record = call('HGET', J, id)
    return not record or group_of(record) ~= group
end
local function is_orphan_parked(parked)
    local ok, group = pcall(function()
        return sub(parked, 1, 2 + unpack_struct('>I2', parked))
    end)
    local rest = ok and sub(parked, #group + 1) or ''
    if #rest ~= PARKED_BYTES then
        return true
    end
    local priority, at, id, zone = unpack_struct('>I4I6c8B', rest)
    local record = call('HGET', J, id)
    return not record or group_of(record) ~= group or not Z[priority]
        or tonumber(call('ZSCORE', Z[priority], id) or -1) ~= zone * ZONE + at
end

verbs.slots = function(at)
    local cursor, slots = members(G, at)
    local problems = {}
    for _, slot in ipairs(slots) do
        if is_orphan_slot(slot) then
            problems[#problems + 1] = { 'orphan_slot', slot, '' }
        end
    end
    return add({ cursor }, problems)
end

verbs.parked = function(at)
    local cursor, list = members(Q, at)
    local problems = {}
    for _, parked in ipairs(list) do
        if is_orphan_parked(parked) then
            problems[#problems + 1] = { 'orphan_parked', parked, '' }
        end
    end
    return add({ cursor }, problems)
end

verbs.ticks = function(at)
    local cursor, names = members(T, at)
    return add({ cursor }, missing_in(N, names, 'orphan_tick', ''))
end

verbs.schedules = function(at)
    local cursor, names = scan(N, at)
    local problems = {}
    for _, name in ipairs(names) do
        if not call('ZSCORE', T, name) then
            problems[#problems + 1] = { 'schedule_untimed', name, '' }
        end
    end
    return add({ cursor }, problems)
end

-- The problem of a lock, if any: j has fence I8, depth I4, ttl I6 and owner, d its expiry.
local function check_lock(name, text)
    if #text < LOCK_BYTES then
        return 'lock_unreadable'
    elseif not call('ZSCORE', D, name) then
        return 'lock_without_end'
    elseif unpack_struct('>I8', text) > header[LAST_FENCE] then
        return 'fence_low'
    end
end

verbs.locks = function(at)
    local cursor, names, texts = scan(J, at)
    local problems = {}
    for i, name in ipairs(names) do
        local kind = check_lock(name, texts[i])
        if kind then
            problems[#problems + 1] = { kind, name, '' }
        end
    end
    return add({ cursor }, problems)
end

verbs.lock_ends = function(at)
    local cursor, names = members(D, at)
    return add({ cursor }, missing_in(J, names, 'orphan_place', ''))
end

verbs.numbers = function(at)
    local is_k = ARGV[at] == 'k'
    local cursor, fields, values = scan(is_k and K or J, at + 1)
    local greatest, bytes = 0, 0
    for i, id in ipairs(is_k and values or fields) do
        if is_local_id(id) then
            greatest = max(greatest, number_of(id))
        end
        bytes = bytes + #fields[i] + #values[i]
    end
    return { cursor, pack('>I8', greatest), pack('>I8', #fields), pack('>I8', bytes) }
end

verbs.sample = function()
    return { call('HRANDFIELD', J) or '' }
end
