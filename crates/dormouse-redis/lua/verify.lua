-- Checks and mends a partition, a page at a time; lib.lua comes before it, with the same KEYS and ARGV,
-- and one verb. After the zsets KEYS has one more: x, a hash id -> record of what was set aside.
--
-- KEYS 7.. are the priorities in g and those that were found without being in it.
-- Answers 'stale', v, g, or 'done' and what the verb answers.

local fields = call('HMGET', S, 'v', 'b', 'g')
if (fields[1] or '0') ~= ARGV[3] then
    return { 'stale', fields[1] or '0', fields[3] or '' }
end

local HEADER_FIELDS = {
    'last_number', 'paused', 'waiting', 'lease_end', 'last_fence', 'puts', 'reserves', 'acks', 'nacks',
    'expiries', 'releases', 'kills', 'cancels', 'bytes',
}
-- Five bytes of an id, a zone of scores; others only have to be exact.
local FIELD_MAX = { [LAST_NUMBER] = 2 ^ 40 - 1, [PAUSED] = NEVER, [WAITING] = NEVER, [LEASE_END] = NEVER }

-- No script has written this number; one that is none compares as false.
local function is_strange(which, number)
    local most = FIELD_MAX[which] or 2 ^ 53 - 1
    return not (number >= 0 and number <= most and number == floor(number))
end

-- Numbers that make no sense are begun afresh, and only they, as what the others count is written nowhere
-- else. What is too low or too high then is found by the jobs. Gives the names of those numbers.
local function read_header(text)
    local strange = {}
    local numbers = #text == HEADER_BYTES and { unpack_struct(HEADER, text) } or {}
    for which, name in ipairs(HEADER_FIELDS) do
        local number = numbers[which]
        if number and not is_strange(which, number) then
            header[which] = number
        else
            strange[#strange + 1] = name
        end
    end
    return strange
end
header = { 0, 0, 0, NEVER, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
local invalid_fields = fields[2] and read_header(fields[2]) or {}
header[CHANGED] = false
