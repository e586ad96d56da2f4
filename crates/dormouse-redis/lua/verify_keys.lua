-- Lists keys. The call is sent to any slot of a node.
--
-- ARGV  primaries: answers CLUSTER SLOTS; scan cursor prefix: answers a cursor and keys

if ARGV[1] == 'primaries' then
    return redis.call('CLUSTER', 'SLOTS')
end
local PAGE = 500 -- a hint to Redis
return redis.call('SCAN', ARGV[2], 'MATCH', ARGV[3] .. '*', 'COUNT', PAGE)
