-- schedule_page: most schedules; '' or score and name of the last one of the page before. In the
-- order of their scores, then names. Answers: more B, then entries.

do
    -- By bytes: `<` on strings would depend on the locale of Redis.
    local function is_name_before(a, b)
        for i = 1, min(#a, #b) do
            local x, y = string.byte(a, i), string.byte(b, i)
            if x ~= y then
                return x < y
            end
        end
        return #a < #b
    end

    -- The number of schedules up to this score and name.
    local function rank_after(score, name)
        local low = call('ZCOUNT', T, '-inf', format('(%.0f', score))
        local high = low + call('ZCOUNT', T, score, score)
        while low < high do
            local middle = floor((low + high) / 2)
            if is_name_before(name, call('ZRANGE', T, middle, middle)[1]) then
                high = middle
            else
                low = middle + 1
            end
        end
        return low
    end

    verbs.schedule_page = function(at)
        local most, score = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
        local rank = score and rank_after(score, ARGV[at + 2]) or 0
        local names = call('ZRANGE', T, rank, rank + most - 1)
        local entries, bytes, more = {}, 0, #names == most
        for _, name in ipairs(names) do
            if bytes > ENTRIES_BYTES_MAX then
                more = true
                break
            end
            local value = call('HGET', N, name)
            if value then
                bytes = bytes + #value
                entries[#entries + 1] = schedule_entry(name, value, false)
            end
        end
        return pack('>B', more and 1 or 0) .. concat(entries), false
    end
end
