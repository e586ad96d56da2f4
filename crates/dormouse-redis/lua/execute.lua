-- Does the verbs of a flight in their order, as far as they are defined: one that is not, or that answers
-- nothing, comes again when the rest is. So this is here twice; a function would cost more.

while ARGV[at] do
    local verb, arguments, before = verbs[ARGV[at]], tonumber(ARGV[at + 1]), #records
    if not verb then
        break
    end
    local fine, answer, wrote = pcall(verb, at + 2, arguments)
    if fine and not answer then
        break
    elseif fine then
        answers[#answers + 1] = pack('>I4I4', #answer, #records - before) .. answer
        writes = writes or wrote
    else
        -- It should not be. Whatever it has done is in the header, and the others are answered.
        local text = type(answer) == 'table' and answer.err or tostring(answer)
        answers[#answers + 1] = pack('>I4I4', #text, FAILED) .. text
        while #records > before do
            records[#records], recorded[#recorded] = nil, nil
        end
        writes = true
    end
    at = at + 2 + arguments
end
