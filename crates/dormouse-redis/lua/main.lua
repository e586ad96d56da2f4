-- Recognises a repeated request, does the verbs in their order, closes the books.

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
    local answer = { 'done', unpack_struct('>I8', kept, 9), sub(kept, 21 + ids) }
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

state.n, state.u, state.w, state.e, state.c, state.q =
    fields[3], fields[4], fields[5], fields[6], fields[7], fields[8]

-- A priority is given up only if nobody has it: who is not in its zset may be dead.
local dropped = #ARGV[7] / 4
if dropped > 0 and call('EXISTS', D) == 1 then
    return { 'busy' }
end
for i = #KEYS - dropped + 1, #KEYS do
    if call('EXISTS', KEYS[i]) == 1 then
        return { 'busy' }
    end
end

local answers, at, writes = {}, 12, false
while ARGV[at] do
    local verb, arguments = ARGV[at], tonumber(ARGV[at + 1])
    local shown = #records
    local answer, wrote = verbs[verb](at + 2, arguments)
    answers[#answers + 1] = pack('>I4I4', #answer, #records - shown) .. answer
    writes = writes or wrote
    at = at + 2 + arguments
end

if ARGV[5] ~= '' then
    set('g', ARGV[5])
    set('v', tonumber(ARGV[3]) + 1)
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
    local seen = now_ms or about_ms or (fields[1] and number % 16 ~= 0 and select(2, unpack_struct('>I8I8', fields[1]))) or now()
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
