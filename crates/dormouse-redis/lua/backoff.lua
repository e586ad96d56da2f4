-- The delay after a failed attempt, the same to the millisecond on every backend: the full delay of
-- the job's backoff, less what jitter and a hash of id and attempt take away, rounded up.
--
-- backoff: nil = the default, or kind B: 0 fixed (delay I6), 1 exponential
-- (base I6, factor I4, cap I6), 2 list (count B, delay I6 each); then the jitter in thousandths I2,
-- if it is not the usual one of its kind.
--
-- Lua has only doubles, so 64 bits are four limbs of 16, the lowest first.

local backoff_ms
do
    local bxor, lshift, rshift = bit.bxor, bit.lshift, bit.rshift

    -- v ^ (v >> bits), with 16 < bits < 32, so that a limb depends on the two above it only.
    local function fold(v, bits)
        local down = bits - 16
        local up = 16 - down
        local function shifted(low, high)
            return band(rshift(low, down) + lshift(high, up), 65535)
        end
        return { bxor(v[1], shifted(v[2], v[3])), bxor(v[2], shifted(v[3], v[4])),
            bxor(v[3], shifted(v[4], 0)), v[4] }
    end

    -- v * w modulo 2^64.
    local function times(v, w)
        local product, carry = {}, 0
        for i = 1, 4 do
            local sum = carry
            for j = 1, i do
                sum = sum + v[j] * w[i + 1 - j]
            end
            product[i] = sum % 65536
            carry = floor(sum / 65536)
        end
        return product
    end

    local FIRST, SECOND = { 0xe5b9, 0x1ce4, 0x476d, 0xbf58 }, { 0x11eb, 0x1331, 0x49bb, 0x94d0 }

    -- The upper 16 bits of SplitMix64's finaliser.
    local function hash(id, attempt)
        local a, b, c, d = unpack_struct('>I2I2I2I2', id)
        local v = { d, c, b, bxor(a, attempt % 65536) }
        return fold(times(fold(times(fold(v, 30), FIRST), 27), SECOND), 31)[4]
    end

    -- full * left / whole, rounded up, with full < 2^48 and left <= whole < 2^26: in two steps, as
    -- the product exceeds a double.
    local function share_of(full, left, whole)
        local step = 2097152
        local upper = floor(full / step) * left
        local rest = upper % whole * step + full % step * left
        return floor(upper / whole) * step + math.ceil(rest / whole)
    end

    local function exponential(base, factor, cap, steps)
        if base == 0 then
            -- As in Rust, where a power that overflows 64 bits gives the cap, even times 0.
            return factor ^ steps >= 2 ^ 64 and cap or 0
        elseif factor > 1 then
            -- 48 steps exceed any cap.
            for _ = 1, min(steps, 48) do
                base = base * factor
                if base >= cap then
                    return cap
                end
            end
        elseif factor == 0 and steps > 0 then
            return 0
        end
        return min(base, cap)
    end

    -- The full delay, the usual jitter, and where a jitter that was given begins.
    local function read(backoff, steps)
        local kind = unpack_struct('>B', backoff)
        if kind == BACKOFF_FIXED then
            return unpack_struct('>I6', backoff, 2), 0, 8
        elseif kind == BACKOFF_EXPONENTIAL then
            local base, factor, cap = unpack_struct('>I6I4I6', backoff, 2)
            return exponential(base, factor, cap, steps), EXPONENTIAL_JITTER_PERMILLE, 18
        end
        local length = unpack_struct('>B', backoff, 2)
        local full = 0
        if length > 0 then
            full = unpack_struct('>I6', backoff, 3 + 6 * min(steps, length - 1))
        end
        return full, 0, 3 + 6 * length
    end

    function backoff_ms(id, attempt, backoff)
        backoff = backoff or DEFAULT_BACKOFF
        local full, jitter, at = read(backoff, max(attempt - 1, 0))
        if #backoff >= at then
            jitter = unpack_struct('>I2', backoff, at)
        end
        if jitter == 0 then
            return full
        end
        local left = (JITTER_PERMILLE_MAX - jitter) * 65536 + jitter * hash(id, attempt)
        return share_of(full, left, JITTER_PERMILLE_MAX * 65536)
    end
end
