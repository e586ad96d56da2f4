-- Whether the batch has rare verbs: only then their functions are defined.
local cold = false
do
    local hot = { put_plain = true, put = true, reserve = true, ack = true, nack = true,
        release = true, extend = true }
    for verb in pairs(wanted) do
        cold = cold or not hot[verb]
    end
end
