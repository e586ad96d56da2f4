-- Which keys there are; a node is asked by any slot that it has.
--
-- ARGV  primaries: answers CLUSTER SLOTS; scan cursor prefix: answers a cursor and keys

if ARGV[1] == 'primaries' then
    return redis.call('CLUSTER', 'SLOTS')
end
return redis.call('SCAN', ARGV[2], 'MATCH', ARGV[3] .. '*', 'COUNT', 500)
