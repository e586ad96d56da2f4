-- How topics are pushed. One list of all topics beside the register, so that a server learns of
-- changes with one command.
--
-- KEYS  1 u  hash  topic -> version I8, then as the server wrote it; '' -> revision
--       2 p  zset  the topics of u, all with score 0, so sorted by name
-- ARGV  get topic: the entry, or ''
--       set topic expected entry most: the entries after and before it, '' = none, and the
--       version under which that is so; an expected version of '' is any, an entry of '' removes.
--       A number = another version is present; 'full' = there are `most`
--       page after limit bytes seen: revision, whether there are more, topics and entries; nothing
--       is listed if the revision is `seen`

local pack = struct.pack
local call = redis.call
local U, P = KEYS[1], KEYS[2]
local verb, topic = ARGV[1], ARGV[2]

-- Notes a change, and gives the revision: greater than all before, also than those that Redis has
-- lost. It is the version of what changed.
local function next_revision()
    local time = call('TIME')
    local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
    local revision = math.max(tonumber(call('HGET', U, '') or 0) + 1, now_ms)
    call('HSET', U, '', string.format('%.0f', revision))
    return revision
end

-- The version of there being no push: not below any that the topic had, and below all to come.
local function version_of_none(is_removed)
    local revision = not is_removed and call('HGET', U, '') or next_revision()
    return pack('>I8', tonumber(revision))
end

if verb == 'get' then
    return call('HGET', U, topic) or ''
elseif verb == 'set' then
    local present = call('HGET', U, topic)
    local version = present and struct.unpack('>I8', present) or 0
    if ARGV[3] ~= '' and tonumber(ARGV[3]) ~= version then
        return version
    end
    if ARGV[4] == '' then
        if present then
            call('HDEL', U, topic)
            call('ZREM', P, topic)
        end
        return { '', present or '', version_of_none(present) }
    end
    if present and present:sub(9) == ARGV[4] then
        return { present, present, present:sub(1, 8) }
    end
    if not present and call('ZCARD', P) >= tonumber(ARGV[5]) then
        return 'full'
    end
    local entry = pack('>I8', next_revision()) .. ARGV[4]
    call('HSET', U, topic, entry)
    call('ZADD', P, 0, topic)
    return { entry, present or '', entry:sub(1, 8) }
end
local revision = call('HGET', U, '') or '0'
local page = { revision, 0 }
if revision == ARGV[5] then
    return page
end
local limit, bytes = tonumber(ARGV[3]), tonumber(ARGV[4])
for index, name in ipairs(call('ZRANGE', P, topic, '+', 'BYLEX', 'LIMIT', 0, limit + 1)) do
    if index > limit or bytes < 0 then
        page[2] = 1
        break
    end
    local entry = call('HGET', U, name)
    if entry then
        bytes = bytes - #entry
        page[#page + 1] = name
        page[#page + 1] = entry
    end
end
return page
