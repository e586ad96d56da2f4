-- Checks and mends a partition, a page at a time; lib.lua comes before it, with the same KEYS and ARGV,
-- and one verb. After the zsets KEYS has one more: x, a hash id -> record of what was set aside.
--
-- KEYS 7.. are the priorities in g and those that were found without being in it.
-- Answers 'stale', v, g, or 'done' and what the verb answers.

local fields = call('HMGET', S, 'v', 'n', 'u', 'w', 'e', 'c', 'q', 'g')
if (fields[1] or '0') ~= ARGV[3] then
    return { 'stale', fields[1] or '0', fields[8] or '' }
end
state.n, state.u, state.w, state.e, state.c, state.q =
    fields[2], fields[3], fields[4], fields[5], fields[6], fields[7]
local counters_unreadable = state.c and #state.c ~= 72
if counters_unreadable then
    state.c = nil
end
