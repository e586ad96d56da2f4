-- Slow path of ack: invalid tokens, keys, jobs of ticks, last leases, and leases that may have
-- expired.

local acked = {} -- set of ids

-- Whether the job was leased for its last attempt and that lease has expired.
local function is_spent(id, priority, flags)
    if band(flags, LAST) == 0 then
        return false
    end
    local score = tonumber(call('ZSCORE', Z[priority], id) or nil)
    return not score or score - 2 * ZONE <= now()
end

-- Frees the key of an acked job, or holds it for its key_ttl.
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

-- The result for a token. If it is valid, the job's key is freed or held.
function slow.check_token(id, progress, fence, priority, flags)
    if acked[id] then
        return GONE
    elseif not progress then
        return call('HEXISTS', J, id) == 1 and LOST or GONE
    elseif sub(progress, 1, 8) ~= fence or band(flags, HELD) == 0
        or is_spent(id, priority, flags) then
        -- Dead jobs that the settings do not keep are gone.
        return locate(id) and LOST or GONE
    end
    acked[id] = true
    if band(flags, KEYED) ~= 0 and band(flags, KEY_LOST) == 0 then
        settle_key(id)
    end
    if band(flags, TICKED) ~= 0 then
        settle_tick_of(id, now())
    end
    return DONE
end

-- Counts the jobs of a priority whose leases had expired.
function slow.count_lapsed(priority, members)
    for _, score in ipairs(call('ZMSCORE', Z[priority], unpack(members))) do
        if tonumber(score) <= ZONE + now() then
            count(EXPIRIES, 1)
        end
    end
end
