-- ack: tokens (id c8, fence I8 each) in one argument.
-- Answers per token: outcome B (0 done, 2 gone, 3 lost), attempts I4.

-- What ack wants to know of a progress: fence, attempts, priority, bytes, flags. To read all of it would
-- take longer than all else that is done for a job here.
local HOLD = '>I8I4I4' .. string.rep('x', 20) .. 'I4' .. string.rep('x', 6) .. 'B'

-- Whether a job that was leased for the last time is dead by now.
local function is_spent(id, priority, flags)
    if band(flags, LAST) == 0 then
        return false
    end
    local score = tonumber(call('ZSCORE', Z[priority], id) or nil)
    return not score or score - 2 * ZONE <= now()
end

-- Counts those of a priority whose leases had run out; only if any lease can have. To ask the clock is
-- a command of its own, which an end that is far enough away spares: no script is so long on its way.
local WAY_MS = 10000
local function count_lapsed(priority, members)
    local first_end = tonumber(state.e)
    if not first_end or about_ms and first_end > about_ms + WAY_MS or first_end > now() then
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
    local answers, gone, leaving, seen, left = {}, {}, {}, {}, 0
    for i, id in ipairs(ids) do
        local text, outcome = progress[i], DONE
        local fence, attempts, priority, bytes, flags
        if text then
            fence, attempts, priority, bytes, flags = unpack_struct(HOLD, text)
        end
        if seen[id] then
            outcome = GONE
        elseif not text then
            outcome = call('HEXISTS', J, id) == 1 and LOST or GONE
        elseif fence ~= fences[i] or band(flags, HELD) == 0 or is_spent(id, priority, flags) then
            -- The dead that the settings do not keep are gone.
            outcome = locate(id) and LOST or GONE
        else
            seen[id] = true
            if band(flags, KEYED) ~= 0 and band(flags, KEY_LOST) == 0 then
                settle_key(id)
            end
            gone[#gone + 1] = id
            local members = leaving[priority] or {}
            leaving[priority] = members
            members[#members + 1] = id
            left = left + bytes
        end
        answers[i] = pack('>BI4', outcome, attempts or 0)
    end
    if #gone > 0 then
        for priority, members in pairs(leaving) do
            count_lapsed(priority, members)
            call('ZREM', Z[priority], unpack(members))
        end
        call('HDEL', J, unpack(gone))
        call('HDEL', F, unpack(gone))
        count(ACKS, #gone)
        count(BYTES, -left)
    end
    return concat(answers), #gone > 0
end
