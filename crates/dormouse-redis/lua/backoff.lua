-- The delay after a failed attempt, the same to the millisecond on every backend: the full delay of
-- the job's backoff, times a factor in [0.5, 1) that is a hash of id and attempt, rounded up.
--
-- backoff: nil = the default, or kind B: 0 fixed (delay I6), 1 exponential
-- (base I6, factor I4, cap I6), 2 list (count B, delay I6 each).
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

    -- The finaliser of SplitMix64, without its lowest 11 bits: the upper 26 and the lower 27 of 53.
    local function hash(id, attempt)
        local a, b, c, d = unpack_struct('>I2I2I2I2', id)
        local v = { d, c, b, bxor(a, attempt % 65536) }
        v = fold(times(fold(times(fold(v, 30), FIRST), 27), SECOND), 31)
        return v[4] * 1024 + floor(v[3] / 64), v[3] % 64 * 2097152 + v[2] * 32 + floor(v[1] / 2048)
    end

    -- a * b with a < 2^48, b < 2^27: the part above 27 bits, and the 27 bits.
    local function times_27(a, b)
        local upper = floor(a / 16777216) * b
        local lower = upper % 8 * 16777216 + a % 16777216 * b
        return floor(upper / 8) + floor(lower / 134217728), lower % 134217728
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

    local function full_ms(backoff, attempt)
        local steps = max(attempt - 1, 0)
        backoff = backoff or DEFAULT_BACKOFF
        local kind = unpack_struct('>B', backoff)
        if kind == BACKOFF_FIXED then
            return (unpack_struct('>I6', backoff, 2))
        elseif kind == BACKOFF_EXPONENTIAL then
            local base, factor, cap = unpack_struct('>I6I4I6', backoff, 2)
            return exponential(base, factor, cap, steps)
        end
        local length = unpack_struct('>B', backoff, 2)
        if length == 0 then
            return 0
        end
        return (unpack_struct('>I6', backoff, 3 + 6 * min(steps, length - 1)))
    end

    function backoff_ms(id, attempt, backoff)
        local full = full_ms(backoff, attempt)
        -- full * (2^53 + hash) / 2^54, rounded up; the factor is two parts of 27 bits.
        local upper, lower = hash(id, attempt)
        local carry, last = times_27(full, lower)
        local whole, low = times_27(full, 67108864 + upper)
        low = low + carry
        whole = whole + floor(low / 134217728)
        return (low % 134217728 > 0 or last > 0) and whole + 1 or whole
    end
end
