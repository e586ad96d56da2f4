-- Recognises a repeated request, does the verbs in their order, closes the books.

local DEAD_MAX = 256 -- dead jobs that are asked for their priority when one is given up
local FAILED = 4294967295

local server = 'r' .. ARGV[1]
local fields = call('HMGET', S, server, 'v', 'n', 'u', 'w', 'e', 'c', 'q')
local number = tonumber(ARGV[2])

if fields[1] and unpack_struct('>I8', fields[1]) == number then
    -- It came before and was done; only the answer was lost. Records are read again: they are too
    -- large to be kept twice.
    local kept = fields[1]
    -- Written once more, so that whoever waits for replicas on this connection waits for the first
    -- time too.
    pcall_redis('HSET', S, server, kept)
    local ids = unpack_struct('>I4', kept, 17)
    local answer = { 'done', 0, sub(kept, 21 + ids) } -- when it was is long ago
    for at = 21, 20 + ids, 8 do
        answer[#answer + 1] = call('HGET', J, sub(kept, at, at + 7)) or ''
    end
    return answer
end

if fields[1] and unpack_struct('>I8', fields[1]) > number then
    -- A connection that was given up delivers what was sent again, and done, long ago.
    return { 'late' }
end

if (fields[2] or '0') ~= ARGV[3] then
    return { 'stale', fields[2] or '0', call('HGET', S, 'g') or '' }
end

-- A copy that was long on its way must not take jobs for nobody: what found nothing the first time is
-- not in the books. Whoever is behind only with its clock is told the time and comes again.
if about_ms and wanted.reserve and math.abs(now() - about_ms) > 5000 then
    return { 'again', now() }
end

state.n, state.u, state.w, state.e, state.c, state.q =
    fields[3], fields[4], fields[5], fields[6], fields[7], fields[8]

-- A priority is given up only if nobody has it: whoever is not in its zset may be dead. If some of
-- those to be given up are in use, the answer is the others.
local dropped = #ARGV[7] / 4
if dropped > 0 then
    local used, deaths = {}, call('ZRANGE', D, 0, DEAD_MAX)
    for _, id in ipairs(deaths) do
        local progress = call('HGET', F, id)
        if progress then
            used[read_progress(progress).priority] = true
        end
    end
    local free = {}
    for i = 1, dropped do
        local priority = unpack_struct('>I4', ARGV[7], i * 4 - 3)
        if #deaths <= DEAD_MAX and not used[priority] and call('EXISTS', KEYS[#KEYS - dropped + i]) == 0 then
            free[#free + 1] = pack('>I4', priority)
        end
    end
    if #free < dropped then
        return { 'busy', concat(free) }
    end
end

local answers, at, writes = {}, 12, false
while ARGV[at] do
    local verb, arguments = ARGV[at], tonumber(ARGV[at + 1])
    local shown = #records
    local fine, answer, wrote = pcall(verbs[verb], at + 2, arguments)
    if fine then
        answers[#answers + 1] = pack('>I4I4', #answer, #records - shown) .. answer
        writes = writes or wrote
    else
        -- It should not be. Whatever it has done is in the books, and the others are answered.
        local text = type(answer) == 'table' and answer.err or tostring(answer)
        answers[#answers + 1] = pack('>I4I4', #text, FAILED) .. text
        while #records > shown do
            records[#records], recorded[#recorded] = nil, nil
        end
        writes = true
    end
    at = at + 2 + arguments
end

-- Dead jobs that the settings do not keep go by and by.
if (ARGV[9] ~= '' or ARGV[10] ~= '') and not rare then
    sweep(4)
end

if ARGV[5] ~= '' then
    local colon = string.find(ARGV[5], ':', 1, true)
    set('v', sub(ARGV[5], 1, colon - 1))
    set('g', sub(ARGV[5], colon + 1))
    writes = true
end
if counters and changed.c then
    state.c = pack(COUNTERS, unpack(counters))
end
if publish then
    call('SPUBLISH', ARGV[11], pack('>I8', state.w))
end

local text = concat(answers)
local write = {}
for field in pairs(changed) do
    write[#write + 1] = field
    write[#write + 1] = state[field]
end
if writes then
    -- When this server was seen last: not every verb needs the clock, so now and then will do.
    local last = fields[1] and number % 16 ~= 0 and select(2, unpack_struct('>I8I8', fields[1]))
    local seen = now_ms or about_ms or last or now()
    local ids = concat(recorded)
    write[#write + 1] = server
    write[#write + 1] = pack('>I8I8I4', number, seen, #ids) .. ids .. text
    if not fields[1] then
        -- A server not seen here before: those not seen for ten minutes are gone.
        for _, field in ipairs(call('HKEYS', S)) do
            if sub(field, 1, 1) == 'r' and field ~= server then
                local _, last = unpack_struct('>I8I8', call('HGET', S, field))
                if last < now() - 600000 then
                    call('HDEL', S, field)
                end
            end
        end
    end
end
if #write > 0 then
    call('HSET', S, unpack(write))
end

local answer = { 'done', now_ms or 0, text }
for i = 1, #records do
    answer[i + 3] = records[i]
end
return answer
