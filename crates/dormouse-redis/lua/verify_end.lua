-- Does the verb, and closes the books if it changed something.

local answer = verbs[ARGV[12]](14, tonumber(ARGV[13]))
if changed.c then
    state.c = pack(COUNTERS, unpack(counters))
end
local write = {}
for field in pairs(changed) do
    write[#write + 1] = field
    write[#write + 1] = state[field]
end
if #write > 0 then
    call('HSET', S, unpack(write))
end
if publish then
    call('SPUBLISH', ARGV[11], pack('>I8', state.w))
end
table.insert(answer, 1, 'done')
return answer
