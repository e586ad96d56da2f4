-- Who may pass: recognises a repeated request, one that comes too late, and one that knows another version.

local server = 'r' .. ARGV[1]
local fields = call('HMGET', S, server, 'v', 'b')
local number, kept = tonumber(ARGV[2]), fields[1]
local kept_number, kept_at, kept_ids
if kept then
    kept_number, kept_at, kept_ids = unpack_struct('>I8I8I4', kept)
end

if kept_number == number then
    -- It came before and was done; only the answer was lost. Records are read again: they are too
    -- large to be kept twice.
    -- Written once more, so that whoever waits for replicas on this connection waits for the first
    -- time too.
    pcall_redis('HSET', S, server, kept)
    local answer = { 'done', 0, sub(kept, 21 + kept_ids) } -- when it was is long ago
    for at = 21, 20 + kept_ids, 8 do
        answer[#answer + 1] = call('HGET', J, sub(kept, at, at + 7)) or ''
    end
    return answer
elseif kept and kept_number > number then
    -- A connection that was given up delivers what was sent again, and done, long ago.
    return { 'late' }
elseif (fields[2] or '0') ~= ARGV[3] then
    return { 'stale', fields[2] or '0', call('HGET', S, 'g') or '' }
end

-- The verbs of this flight. Others are not defined.
local wanted, at = {}, 12
while ARGV[at] do
    wanted[ARGV[at]] = true
    at = at + 2 + ARGV[at + 1]
end

-- A copy that was long on its way must not take jobs for nobody: what found nothing the first time is
-- not in the books. Whoever is behind only with its clock is told the time and comes again.
if about_ms and wanted.reserve and math.abs(now() - about_ms) > 5000 then
    return { 'again', now() }
end

if fields[3] then
    header = { unpack_struct(HEADER, fields[3]) }
elseif call('HEXISTS', S, 'n') == 1 then
    -- Its numbers would be given again.
    return { err = 'ERR this topic was written by a dormouse before 0.1; drain it with that one' }
else
    header = { 0, 0, 0, NEVER, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
end
header[CHANGED] = false

-- What the flight comes to: answers, and whether anything was done that must not be done again.
local answers, writes = {}, false
at = 12
