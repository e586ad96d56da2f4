-- Tries every command that our scripts use, without side effects.
-- KEYS: a hash, a sorted set. ARGV: a channel.
-- Returns nothing, or the first command that failed and the error of Redis.
local hash, zset, channel = KEYS[1], KEYS[2], ARGV[1]
local trials = {
  {'TIME'},
  {'HSET', hash, 'check', '1'}, {'HGET', hash, 'check'}, {'HMGET', hash, 'check'},
  {'HEXISTS', hash, 'check'}, {'HLEN', hash}, {'HKEYS', hash}, {'HDEL', hash, 'check'},
  {'ZADD', zset, '1', 'check'}, {'ZSCORE', zset, 'check'}, {'ZMSCORE', zset, 'check'},
  {'ZRANK', zset, 'check'}, {'ZCARD', zset}, {'ZCOUNT', zset, '0', '1'}, {'ZRANGE', zset, '0', '0'},
  {'ZLEXCOUNT', zset, '-', '+'}, {'ZREM', zset, 'check'},
  {'EXISTS', hash}, {'UNLINK', hash, zset},
  {'SPUBLISH', channel, ''},
}
for _, trial in ipairs(trials) do
  local reply = redis.pcall(unpack(trial))
  if type(reply) == 'table' and reply.err then
    return {trial[1], reply.err}
  end
end
return {}
