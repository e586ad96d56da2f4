-- Slow path of ack: invalid tokens, keys, spans, jobs of ticks, last leases, leases that may have
-- expired, and done jobs that are kept.

local acked = {} -- set of ids

-- Whether the job was leased for its last attempt and that lease has expired.
local function is_spent(id, priority, flags)
    if band(flags, LAST) == 0 then
        return false
    end
    local score = tonumber(call('ZSCORE', Z[priority], id) or nil)
    return not score or score - 2 * ZONE <= now()
end

-- Frees the key of an acked job, or holds it for its key_ttl. A done job that is kept is found by
-- it.
local function settle_key(id)
    local record = call('HGET', J, id)
    local head = record and read_head(record)
    if not head or not head.key or call('HGET', K, head.key) ~= id then
        return
    end
    if head.key_ttl > 0 then
        hold_key(head.key, head.key_ttl)
        sweep_holds(4, 0)
    elseif ARGV[12] == '' then
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
    if band(flags, SPANNED) ~= 0 then
        local found = locate(id)
        if not found or found.where == 'dead' then
            -- Its lease had expired, and then nobody took it in time.
            return found and LOST or GONE
        end
        call('ZREM', E, id)
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

-- Counts the jobs of a priority whose leases had expired. Returns the set of their ids.
function slow.count_lapsed(priority, members)
    local lapsed = {}
    for i, score in ipairs(call('ZMSCORE', Z[priority], unpack(members))) do
        if tonumber(score) <= ZONE + now() or tonumber(score) >= 3 * ZONE then
            count(EXPIRIES, 1)
            lapsed[members[i]] = true
        end
    end
    return lapsed
end

-- Keeps acked jobs as done, and removes more of the oldest ones than it keeps.
function slow.keep_done(members, lapsed)
    local texts, progress, placed = call('HMGET', F, unpack(members)), {}, {}
    for i, id in ipairs(members) do
        local p = read_progress(texts[i])
        p.expiries = p.expiries + (lapsed[id] and 1 or 0)
        p.flags = band(p.flags, KEYED + KEY_LOST + TICKED + SPANNED + GROUPED)
        progress[2 * i - 1], progress[2 * i] = id, write_progress(p)
        placed[2 * i - 1], placed[2 * i] = format('%d', now() + fraction), id
    end
    call('HSET', F, unpack(progress))
    call('ZADD', O, unpack(placed))
    trim_done(2 * #members)
end
