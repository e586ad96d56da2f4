-- Checks and mends a partition, one page per call. lib.lua precedes it, with the same KEYS and ARGV
-- and one verb. After the zsets KEYS has one more: x, a hash id -> record that was set aside.
--
-- KEYS 16.. are the priorities in g, and those whose zsets were found without being in g.
-- Answers 'stale', v, g, or 'done' and the verb's answer.

local fields = call('HMGET', S, 'v', 'b', 'g')
if (fields[1] or '0') ~= ARGV[3] then
    return { 'stale', fields[1] or '0', fields[3] or '' }
end

local HEADER_FIELDS = {
    'last_number', 'paused', 'waiting', 'lease_end', 'last_fence', 'puts', 'reserves', 'acks',
    'nacks', 'expiries', 'releases', 'kills', 'cancels', 'bytes', 'deadline', 'wants_slot',
    'tat_ms', 'tat_parts', 'look_at',
}
-- Job numbers have five bytes, instants fit into a zone; others only have to be exact.
local EXACT_MAX = 9007199254740991
local FIELD_MAX = { [LAST_NUMBER] = JOB_NUMBER_MAX, [PAUSED] = NEVER, [WAITING] = NEVER,
    [LEASE_END] = NEVER }

-- Whether no script can have written this number; NaN compares as false.
local function is_invalid(which, number)
    local most = FIELD_MAX[which] or EXACT_MAX
    return not (number >= 0 and number <= most and number == floor(number))
end

-- Reads the header. Invalid fields keep their initial value, and only they: counters are stored
-- nowhere else. The check of the jobs finds fields that are too low then. Returns the names of the
-- invalid fields.
local function read_header(text)
    local invalid = {}
    text = #text == HEADER_BYTES_UNDYING and text .. pack('>d', NEVER) or text
    text = #text == HEADER_BYTES_UNLIMITED and text .. pack('>dddd', 0, 0, 0, 0) or text
    local numbers = #text == HEADER_BYTES and { unpack_struct(HEADER, text) } or {}
    for which, name in ipairs(HEADER_FIELDS) do
        local number = numbers[which]
        if number and not is_invalid(which, number) then
            header[which] = number
        else
            invalid[#invalid + 1] = name
        end
    end
    return invalid
end
header = { 0, 0, 0, NEVER, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NEVER, 0, 0, 0, 0 }
local invalid_fields = fields[2] and read_header(fields[2]) or {}
header[CHANGED] = false
local had_number = header[LAST_NUMBER] > 0
