-- Executes the verb, and writes the header if it changed.

local answer = verbs[ARGV[FIRST_VERB]](FIRST_VERB + 2, tonumber(ARGV[FIRST_VERB + 1]))
if header[CHANGED] then
    if not had_number then
        -- As in prologue.lua: jobs that are gone may have had greater numbers than those found.
        set(LAST_NUMBER, max(header[LAST_NUMBER], min(now() - NUMBER_EPOCH_MS, NUMBER_START_MAX)))
    end
    call('HSET', S, 'b', pack(HEADER, unpack(header)))
end
if header[PUBLISHES] then
    call('SPUBLISH', ARGV[11], pack('>I8', header[WAITING]))
end
table.insert(answer, 1, 'done')
return answer
