-- The register of topics: the partitions and shard numbers of each topic. They never change.
--
-- KEYS  1 t  hash  topic -> first shard I4, partitions I2; '' -> the last shard in use
--       2 i  hash  first shard I4 -> topic
--       3 n  zset  topic, all with score 0, so sorted by name
--       4 c  zset  topics that have had a schedule, sorted by name
-- ARGV  find topic; give topic partitions most-shards known-shard; whose shard; page after limit;
--       tick topic; ticking after limit
--       known-shard: the last that the server knows. What is given begins after it, since Redis
--       may have lost an older register, whose topics are not all restored yet.

local pack = struct.pack
local call = redis.call
local verb = ARGV[1]

if verb == 'find' then
    return call('HGET', KEYS[1], ARGV[2]) or ''
elseif verb == 'give' then
    local known = call('HGET', KEYS[1], ARGV[2])
    if known then
        return known
    end
    local partitions = tonumber(ARGV[3])
    local last = math.max(tonumber(call('HGET', KEYS[1], '') or 0), tonumber(ARGV[5]))
    if last + partitions > tonumber(ARGV[4]) then
        return 'full'
    end
    local registration = pack(REGISTRATION, last + 1, partitions)
    for shard = last + 1, last + partitions do
        call('HSET', KEYS[2], pack('>I4', shard), ARGV[2])
    end
    call('HSET', KEYS[1], '', last + partitions, ARGV[2], registration)
    call('ZADD', KEYS[3], 0, ARGV[2])
    return registration
elseif verb == 'whose' then
    return call('HGET', KEYS[2], ARGV[2]) or ''
elseif verb == 'tick' then
    call('ZADD', KEYS[4], 0, ARGV[2])
    return ''
elseif verb == 'ticking' then
    return call('ZRANGE', KEYS[4], ARGV[2], '+', 'BYLEX', 'LIMIT', 0, ARGV[3])
end
return call('ZRANGE', KEYS[3], ARGV[2], '+', 'BYLEX', 'LIMIT', 0, ARGV[3])
