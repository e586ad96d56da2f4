-- Drops priorities, but only if no job has them; a job that is not in the zset may be dead. If some
-- are in use, it answers 'busy' and the others.

local DEAD_MAX = 256 -- with more dead jobs no priority is dropped: each is checked

local dropped = #ARGV[7] / 4
local used, deaths = {}, call('ZRANGE', D, 0, DEAD_MAX)
local letters = call('EXISTS', L) -- such a job may yet rest as dead
for _, id in ipairs(deaths) do
    local progress = call('HGET', F, id)
    if progress then
        local _, _, priority = unpack_struct('>I8I4I4', progress)
        used[priority] = true
    end
end
local free = {}
for i = 1, dropped do
    local priority = unpack_struct('>I4', ARGV[7], i * 4 - 3)
    if #deaths <= DEAD_MAX and letters == 0 and not used[priority]
        and call('EXISTS', KEYS[#KEYS - dropped + i]) == 0 then
        free[#free + 1] = pack('>I4', priority)
    end
end
if #free < dropped then
    return { 'busy', concat(free) }
end
