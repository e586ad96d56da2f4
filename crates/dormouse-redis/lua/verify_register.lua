-- Checks and mends the register of topics, see register.lua. All pages answer a cursor, entries,
-- '', and problems: kind, topic, detail each.
--
-- KEYS  1 t, 2 i, 3 n
-- ARGV  topics cursor count: the entries are topics and their registrations
--       shards cursor count, names cursor count: no entries
--       mend_topic topic: adds what it lacks
--       mend_shard shard I4, mend_name topic: removes one without a topic
--       restore topic first-shard partitions: registers a topic again, unless its shards are in use
--       give topic partitions: registers a topic with new shards
-- Mends answer 1 (MENDED) = done, 2 (TAKEN) = the shards are in use, 0 = there is nothing to do.

local pack, unpack_struct = struct.pack, struct.unpack
local call = redis.call
local T, I, N = KEYS[1], KEYS[2], KEYS[3]
local verb, a, b, c = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- First shard and partitions of a topic; nil = the registration is missing or invalid.
local function read_registration(registration)
    if not registration or #registration ~= REGISTRATION_BYTES then
        return nil
    end
    local first, partitions = unpack_struct(REGISTRATION, registration)
    if first == 0 or partitions == 0 or partitions > PARTITIONS_MAX then
        return nil
    end
    return first, partitions
end

local function last()
    return tonumber(call('HGET', T, '') or 0) or 0
end

-- Whether the shard is one of the topic's.
local function covers(topic, shard)
    local first, partitions = read_registration(topic ~= '' and call('HGET', T, topic))
    return first and shard >= first and shard < first + partitions
end

local function owners(first, partitions)
    local shards = {}
    for shard = first, first + partitions - 1 do
        shards[#shards + 1] = pack('>I4', shard)
    end
    return call('HMGET', I, unpack(shards)), shards
end

-- The problems of a topic.
local function check_topic(topic, registration)
    local first, partitions = read_registration(registration)
    if not first then
        return { { 'place_unreadable', topic, '' } }
    end
    local problems = {}
    local missing, taken = nil, nil
    for i, owner in ipairs((owners(first, partitions))) do
        if owner and owner ~= topic and covers(owner, first + i - 1) then
            taken = owner
        elseif owner ~= topic then
            missing = first + i - 1
        end
    end
    if taken then
        problems[#problems + 1] = { 'shards_shared', topic, taken }
    end
    if missing then
        problems[#problems + 1] = { 'shard_missing', topic, string.format('%.0f', missing) }
    end
    if first + partitions - 1 > last() then
        problems[#problems + 1] = { 'last_shard_low', topic, string.format('%.0f', last()) }
    end
    if not call('ZSCORE', N, topic) then
        problems[#problems + 1] = { 'name_missing', topic, '' }
    end
    return problems
end

local function write_topic(topic, first, partitions)
    for i, owner in ipairs((owners(first, partitions))) do
        if not owner or not covers(owner, first + i - 1) then
            call('HSET', I, pack('>I4', first + i - 1), topic)
        end
    end
    if first + partitions - 1 > last() then
        call('HSET', T, '', first + partitions - 1)
    end
    call('ZADD', N, 0, topic)
end

local function page(command, key, visit)
    local reply = call(command, key, a, 'COUNT', b)
    local answer, problems = { reply[1] }, {}
    for i = 1, #reply[2], 2 do
        visit(reply[2][i], reply[2][i + 1], answer, problems)
    end
    answer[#answer + 1] = ''
    for _, problem in ipairs(problems) do
        for i = 1, 3 do
            answer[#answer + 1] = problem[i]
        end
    end
    return answer
end

if verb == 'topics' then
    return page('HSCAN', T, function(topic, registration, answer, problems)
        if topic == '' then
            return
        end
        if read_registration(registration) then
            answer[#answer + 1] = topic
            answer[#answer + 1] = registration
        end
        for _, problem in ipairs(check_topic(topic, registration)) do
            problems[#problems + 1] = problem
        end
    end)
elseif verb == 'shards' then
    return page('HSCAN', I, function(shard, topic, _, problems)
        if #shard ~= 4 or not covers(topic, (unpack_struct('>I4', shard))) then
            problems[#problems + 1] = { 'shard_orphan', topic, shard }
        end
    end)
elseif verb == 'names' then
    return page('ZSCAN', N, function(topic, _, _, problems)
        if call('HEXISTS', T, topic) == 0 then
            problems[#problems + 1] = { 'name_orphan', topic, '' }
        end
    end)
elseif verb == 'mend_topic' then
    local first, partitions = read_registration(call('HGET', T, a))
    if not first then
        return 0
    end
    write_topic(a, first, partitions)
    return MENDED
elseif verb == 'mend_shard' then
    local topic = call('HGET', I, a)
    if topic and not (#a == 4 and covers(topic, (unpack_struct('>I4', a)))) then
        call('HDEL', I, a)
    end
    return MENDED
elseif verb == 'mend_name' then
    if call('HEXISTS', T, a) == 0 then
        call('ZREM', N, a)
    end
    return MENDED
end

if read_registration(call('HGET', T, a)) then
    return verb == 'give' and MENDED or 0 -- it is registered
end
local first, partitions = tonumber(b), tonumber(c)
if verb == 'give' then
    first, partitions = last() + 1, tonumber(b)
end
for i, owner in ipairs((owners(first, partitions))) do
    if owner and owner ~= a and covers(owner, first + i - 1) then
        return TAKEN
    end
end
call('HSET', T, a, pack(REGISTRATION, first, partitions))
write_topic(a, first, partitions)
return MENDED
