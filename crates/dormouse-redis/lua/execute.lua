-- Executes the verbs of the batch in order and stops at one that is not defined, or that answers
-- nil because it needs its slow path: the script includes this file a second time after the slow
-- paths. A function would cost more.

while ARGV[at] do
    local verb, arguments, before = verbs[ARGV[at]], tonumber(ARGV[at + 1]), #records
    if not verb then
        break
    end
    if flow then
        flow.seen = nil -- what held jobs before another verb
    end
    local fine, answer, wrote = pcall(verb, at + 2, arguments)
    if fine and not answer then
        break
    elseif fine then
        answers[#answers + 1] = pack('>I4I4', #answer, #records - before) .. answer
        writes = writes or wrote
    else
        -- A bug. Whatever the verb has changed is counted, and the other verbs are answered.
        local text = type(answer) == 'table' and answer.err or tostring(answer)
        answers[#answers + 1] = pack('>I4I4', #text, FAILED) .. text
        while #records > before do
            records[#records], record_ids[#record_ids] = nil, nil
        end
        writes = true
    end
    at = at + 2 + arguments
end
