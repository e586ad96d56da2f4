-- ack: tokens (id c8, fence I8 each) in one argument.
-- Answers per token: outcome B (0 done, 2 gone, 3 lost), attempts I4.

-- Whether a job that was leased for the last time is dead by now.
local function is_spent(id, p)
    if band(p.flags, LAST) == 0 then
        return false
    end
    local score = tonumber(call('ZSCORE', Z[p.priority], id) or nil)
    return not score or score - 2 * ZONE <= now()
end

-- Counts those of a priority whose leases had run out; only if any lease can have.
local function count_lapsed(priority, members)
    local first_end = tonumber(state.e)
    if not first_end or first_end > now() then
        return
    end
    for _, score in ipairs(call('ZMSCORE', Z[priority], unpack(members))) do
        if tonumber(score) <= ZONE + now() then
            count(EXPIRIES, 1)
        end
    end
end

-- The key of a job that is acked: free, or held.
local function settle_key(id)
    local record = call('HGET', J, id)
    local head = record and read_head(record)
    if not head or not head.key or call('HGET', K, head.key) ~= id then
        return
    end
    if head.key_ttl > 0 then
        call('ZADD', H, after(head.key_ttl), head.key)
        sweep_holds(4)
    else
        call('HDEL', K, head.key)
    end
end

verbs.ack = function(at)
    local tokens = ARGV[at]
    local ids, fences = {}, {}
    for i = 1, #tokens, 16 do
        ids[#ids + 1] = sub(tokens, i, i + 7)
        fences[#fences + 1] = unpack_struct('>I8', tokens, i + 8)
    end
    local progress = call('HMGET', F, unpack(ids))
    local answers, gone, leaving, seen = {}, {}, {}, {}
    for i, id in ipairs(ids) do
        local p = progress[i] and read_progress(progress[i])
        local outcome = DONE
        if seen[id] then
            outcome = GONE
        elseif not p then
            outcome = call('HEXISTS', J, id) == 1 and LOST or GONE
        elseif p.fence ~= fences[i] or band(p.flags, HELD) == 0 or is_spent(id, p) then
            outcome = LOST
        else
            seen[id] = true
            if band(p.flags, KEYED) ~= 0 and band(p.flags, KEY_LOST) == 0 then
                settle_key(id)
            end
            gone[#gone + 1] = id
            local members = leaving[p.priority] or {}
            leaving[p.priority] = members
            members[#members + 1] = id
            count(BYTES, -p.bytes)
        end
        answers[i] = pack('>BI4', outcome, p and p.attempts or 0)
    end
    if #gone > 0 then
        for priority, members in pairs(leaving) do
            count_lapsed(priority, members)
            call('ZREM', Z[priority], unpack(members))
        end
        call('HDEL', J, unpack(gone))
        call('HDEL', F, unpack(gone))
        count(ACKS, #gone)
    end
    return concat(answers), #gone > 0
end
