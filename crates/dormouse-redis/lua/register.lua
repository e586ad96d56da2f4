-- The register of topics: which partitions and shard numbers a topic has, for ever.
--
-- KEYS  1 t  hash  topic -> first shard I4, partitions I2; '' -> the last shard given
--       2 i  hash  first shard I4 -> topic
--       3 n  zset  topic, all of score 0: in the order of their names
-- ARGV  find topic; give topic partitions most-shards; whose shard; page after limit

local pack, unpack_struct = struct.pack, struct.unpack
local call = redis.call
local verb = ARGV[1]

if verb == 'find' then
    return call('HGET', KEYS[1], ARGV[2]) or ''
elseif verb == 'give' then
    local known = call('HGET', KEYS[1], ARGV[2])
    if known then
        return known
    end
    local last, partitions = tonumber(call('HGET', KEYS[1], '') or 0), tonumber(ARGV[3])
    if last + partitions > tonumber(ARGV[4]) then
        return 'full'
    end
    local place = pack('>I4I2', last + 1, partitions)
    for shard = last + 1, last + partitions do
        call('HSET', KEYS[2], pack('>I4', shard), ARGV[2])
    end
    call('HSET', KEYS[1], '', last + partitions, ARGV[2], place)
    call('ZADD', KEYS[3], 0, ARGV[2])
    return place
elseif verb == 'whose' then
    return call('HGET', KEYS[2], ARGV[2]) or ''
end
return call('ZRANGE', KEYS[3], ARGV[2], '+', 'BYLEX', 'LIMIT', 0, ARGV[3])
