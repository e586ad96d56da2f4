-- Locks, in partitions of their own with the same keys: j name -> lock (fence I8, depth I4, ttl I6,
-- owner), d name -> when it expires.
--
-- lock: name, owner, ttl, most locks, waits ('1' = the server will wait for it).
-- renew: name, owner, ttl ('' = as granted). unlock: name, owner.
-- All answer: result B (0 done, 2 free: nothing to renew or unlock, 3 another owner holds it, 6 too
-- many locks), fence I8, expires_at I6, depth I4 (after an unlock 0 = free), owner I2 + bytes.
-- break_lock: name, fence ('' = of any grant). Answers the same: the lock that was broken, 2, or 3:
-- it is held with another fence.
-- lock_page: when the last lock of the page before expires, its name, most locks, beginning of
-- names. Looks at so many locks in the order of their expiry. Answers: more B, expires_at I6 and
-- name I2 + bytes of the last one; then per lock name I2 + bytes, fence I8, expires_at I6, depth
-- I4, owner I2 + bytes.
-- locks: no arguments. Answers the number of locks held I8.
-- holder: name. Answers the owner; '' = the lock is free.

do
    -- The lock of this name, unless it is free or has expired.
    local function held_lock(name)
        local expires_at = tonumber(call('ZSCORE', D, name) or nil)
        local text = expires_at and expires_at > now() and call('HGET', J, name)
        if not text then
            return nil
        end
        local lock = { name = name, expires_at = expires_at, owner = sub(text, LOCK_BYTES + 1) }
        lock.fence, lock.depth, lock.ttl = unpack_struct(LOCK, text)
        return lock
    end

    local function write_lock(lock)
        call('HSET', J, lock.name, pack(LOCK, lock.fence, lock.depth, lock.ttl) .. lock.owner)
        call('ZADD', D, lock.expires_at, lock.name)
    end

    local function free_lock(name)
        call('HDEL', J, name)
        call('ZREM', D, name)
    end

    local function answer(outcome, lock)
        if not lock then
            return pack('>BI8I6I4I2', outcome, 0, 0, 0, 0)
        end
        return pack('>BI8I6I4I2', outcome, lock.fence, lock.expires_at, lock.depth, #lock.owner)
            .. lock.owner
    end

    -- Whether the limit is reached. Expired locks do not count.
    local function is_full(most)
        return call('ZCARD', D) >= most
            and call('ZCOUNT', D, format('(%.0f', now()), '+inf') >= most
    end

    verbs.lock = function(at)
        local name, owner = ARGV[at], ARGV[at + 1]
        local ttl, most = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
        for _, over in ipairs(call('ZRANGE', D, '-inf', now(), 'BYSCORE', 'LIMIT', 0, 16)) do
            free_lock(over)
        end
        local lock = held_lock(name)
        if not lock then
            if is_full(most) then
                return answer(TOO_MANY), false
            end
            lock = { name = name, owner = owner, fence = next_fence(), depth = 1, ttl = ttl }
            lock.expires_at = after(ttl)
        elseif lock.owner == owner then
            lock.depth = lock.depth + 1
            lock.ttl = ttl
            -- Taking it again must not shorten the first grant.
            lock.expires_at = max(lock.expires_at, after(ttl))
        else
            -- Servers wait for different locks, each until its expiry: as long as one of them
            -- sleeps, an unlock must be published.
            if ARGV[at + 4] == '1' and lock.expires_at > header[WAITING] then
                set(WAITING, lock.expires_at)
            end
            return answer(LOST, lock), false
        end
        write_lock(lock)
        return answer(DONE, lock), true
    end

    -- The lock of this name if this owner holds it, else nil and the answer.
    local function own_lock(at)
        local lock = held_lock(ARGV[at])
        if not lock then
            return nil, answer(GONE)
        elseif lock.owner ~= ARGV[at + 1] then
            return nil, answer(LOST, lock)
        end
        return lock
    end

    verbs.renew = function(at)
        local lock, refused = own_lock(at)
        if not lock then
            return refused, false
        end
        lock.ttl = tonumber(ARGV[at + 2]) or lock.ttl
        local before_ms = lock.expires_at
        lock.expires_at = after(lock.ttl)
        if lock.expires_at < before_ms then
            wake(lock.expires_at)
        end
        write_lock(lock)
        return answer(DONE, lock), true
    end

    verbs.unlock = function(at)
        local lock, refused = own_lock(at)
        if not lock then
            return refused, false
        end
        lock.depth = lock.depth - 1
        if lock.depth > 0 then
            write_lock(lock)
        else
            free_lock(lock.name)
            wake(now())
        end
        return answer(DONE, lock), true
    end

    verbs.break_lock = function(at)
        local lock = held_lock(ARGV[at])
        local fence = tonumber(ARGV[at + 1])
        if not lock then
            return answer(GONE), false
        elseif fence and fence ~= lock.fence then
            return answer(LOST, lock), false
        end
        free_lock(lock.name)
        wake(now())
        return answer(DONE, lock), true
    end

    -- Whether a name sorts after another by its bytes: `>` would follow the locale of Redis.
    local function is_after(a, b)
        for i = 1, min(#a, #b) do
            local x, y = string.byte(a, i), string.byte(b, i)
            if x ~= y then
                return x > y
            end
        end
        return #a > #b
    end

    -- How many locks come before the page: those up to the given one, which may be in another
    -- partition, and those that have expired.
    local function rank_after(expires_at, name)
        local low = call('ZCOUNT', D, '-inf', format('(%.0f', expires_at))
        local high = low + call('ZCOUNT', D, expires_at, expires_at)
        while low < high do
            local middle = floor((low + high) / 2)
            if is_after(call('ZRANGE', D, middle, middle)[1], name) then
                high = middle
            else
                low = middle + 1
            end
        end
        return max(low, call('ZCOUNT', D, '-inf', now()))
    end

    verbs.lock_page = function(at)
        local last_at, last = tonumber(ARGV[at]), ARGV[at + 1]
        local most, prefix = tonumber(ARGV[at + 2]), ARGV[at + 3]
        local rank = rank_after(last_at, last)
        local names = call('ZRANGE', D, rank, rank + most - 1)
        local parts = {}
        for _, name in ipairs(names) do
            local lock = held_lock(name)
            last_at, last = lock and lock.expires_at or last_at, name
            if lock and sub(name, 1, #prefix) == prefix then
                parts[#parts + 1] = pack('>I2', #name) .. name
                    .. pack('>I8I6I4I2', lock.fence, lock.expires_at, lock.depth, #lock.owner)
                    .. lock.owner
            end
        end
        local more = #names == most and 1 or 0
        return pack('>BI6I2', more, last_at, #last) .. last .. concat(parts), false
    end

    verbs.holder = function(at)
        local lock = held_lock(ARGV[at])
        return lock and lock.owner or '', false
    end

    verbs.locks = function()
        return pack('>I8', call('ZCOUNT', D, format('(%.0f', now()), '+inf')), false
    end
end
