-- Recognises a batch that was repeated, that is out of date, or that knows another version of g.
-- Answers then: 'done' with the saved answer; 'late'; 'again', now; 'stale', v, g.

-- What is saved of a batch: its number, when it was executed, bytes of ids; then ids and answer.
local SAVED, SAVED_BYTES = '>I8I8I4', 20

local sequence_field = 'r' .. ARGV[1]
local fields = call('HMGET', S, sequence_field, 'v', 'b')
local batch_number, saved = tonumber(ARGV[2]), fields[1]
local saved_number, saved_at, saved_ids
if saved then
    saved_number, saved_at, saved_ids = unpack_struct(SAVED, saved)
end

if saved_number == batch_number then
    -- It has been executed and only its answer was lost. Records are read again: they are too
    -- large to be stored twice.
    -- The field is written once more, so that a WAIT on this connection covers the first write too.
    pcall_redis('HSET', S, sequence_field, saved)
    local answer = { 'done', 0, sub(saved, SAVED_BYTES + 1 + saved_ids) } -- 0: its time is unknown
    for at = SAVED_BYTES + 1, SAVED_BYTES + saved_ids, 8 do
        answer[#answer + 1] = call('HGET', J, sub(saved, at, at + 7)) or ''
    end
    return answer
elseif saved and saved_number > batch_number then
    -- An abandoned connection delivered an old batch whose successors have been executed. Its
    -- answer is never read.
    return { 'late' }
elseif (fields[2] or '0') ~= ARGV[3] then
    return { 'stale', fields[2] or '0', call('HGET', S, 'g') or '' }
end

-- The verbs of this batch. Others are not defined.
local wanted, at, only_acks = {}, FIRST_VERB, true
while ARGV[at] do
    wanted[ARGV[at]] = true
    only_acks = only_acks and ARGV[at] == 'ack'
    at = at + 2 + ARGV[at + 1]
end

-- A batch is executed soon after it was sent, or never. A copy may be much delayed: by a frozen
-- Redis, or by a server that was cut off from it. By then the batch may have been executed and its
-- sequence forgotten, or its callers have been told that it failed. A server whose clock is merely
-- off gets the time and sends the batch again. Acks are exempt, because reading the clock would
-- cost them a command: their tokens end with their leases.
if not only_acks and (ARGV[4] == '' or about_ms and math.abs(now() - about_ms) > BATCH_AGE_MS_MAX)
then
    return { 'again', now() }
end

if fields[3] then
    local text = fields[3]
    if #text < HEADER_BYTES then
        text = #text == HEADER_BYTES_UNDYING and text .. pack('>d', NEVER) or text
        text = text .. pack('>dddd', 0, 0, 0, 0)
    end
    header = { unpack_struct(HEADER, text) }
elseif call('HEXISTS', S, 'n') == 1 then
    -- Its job numbers would be used again.
    return { err = 'ERR this topic was written by a dormouse before 0.1; drain it with that one' }
else
    -- A new partition, or one whose data Redis has lost. Numbers begin at the time in ms, or after
    -- those that the server knows, so that none is given again.
    local known = #ARGV[8] > 3 and unpack_struct('>I5', ARGV[8], 4) or 0
    local first = max(0, known, min(now() - NUMBER_EPOCH_MS, NUMBER_START_MAX))
    header = { first, 0, 0, NEVER, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NEVER, 0, 0, 0, NEVER }
end
header[CHANGED] = false
if ARGV[15] ~= '' then
    -- Other limits: what was held may be free now. A part of a ms means something else to another
    -- rate; where there is none, the next one starts full.
    if ARGV[15] == 'c' then
        header[TAT_MS], header[TAT_PARTS] = 0, 0
    elseif ARGV[15] == 'r' and header[TAT_PARTS] > 0 then
        header[TAT_MS], header[TAT_PARTS] = header[TAT_MS] + 1, 0
    end
    set(LOOK_AT, 0)
    wake(now())
end

-- The answers of the batch, and whether it changed anything: then it must not be executed twice.
local answers, writes = {}, false
at = FIRST_VERB
