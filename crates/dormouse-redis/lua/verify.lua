-- Checks and mends a partition, a page at a time; lib.lua comes before it, with the same KEYS and ARGV,
-- and one verb. After the zsets KEYS has one more: x, a hash id -> record of what was set aside.
--
-- KEYS 7.. are the priorities in g and those that were found without being in it.
-- Answers 'stale', v, g, or 'done' and what the verb answers.

local fields = call('HMGET', S, 'v', 'b', 'g')
if (fields[1] or '0') ~= ARGV[3] then
    return { 'stale', fields[1] or '0', fields[3] or '' }
end

-- Books that cannot be read are begun afresh: what is wrong with them then is found by the jobs.
local function are_readable(text)
    if #text ~= BOOKS_BYTES then
        return false
    end
    for _, number in ipairs({ unpack_struct(BOOKS, text) }) do
        if number ~= floor(number) or math.abs(number) >= 2 ^ 53 then
            return false
        end
    end
    return true
end
local books_unreadable = fields[2] and not are_readable(fields[2])
if fields[2] and not books_unreadable then
    books = { unpack_struct(BOOKS, fields[2]) }
else
    books = { 0, 0, 0, NEVER, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
end
books[CHANGED] = false
