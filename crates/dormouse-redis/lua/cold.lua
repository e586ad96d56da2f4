-- Whether the flight has verbs that few have: their functions are not made for the others.
local cold = false
do
    local hot = { put_plain = true, put = true, reserve = true, ack = true, nack = true, release = true, extend = true }
    for verb in pairs(wanted) do
        cold = cold or not hot[verb]
    end
end
