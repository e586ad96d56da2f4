-- Whether the flight has verbs that few have: their functions are not made for the others.
local rare = false
do
    local often = { put_plain = true, put = true, reserve = true, ack = true, nack = true, release = true, extend = true }
    for verb in pairs(wanted) do
        rare = rare or not often[verb]
    end
end
