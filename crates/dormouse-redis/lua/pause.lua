-- pause: '' = resume, 'i' = until resumed, else for this number of ms. A later pause replaces an
-- earlier one. The answer is empty.

verbs.pause = function(at)
    local paused = header[PAUSED]
    if ARGV[at] == '' then
        if paused == 0 then
            return '', false
        end
        set(PAUSED, 0)
        wake(now())
        return '', true
    end
    local until_ms = ARGV[at] == 'i' and NEVER or min(after(tonumber(ARGV[at])), NEVER - 1)
    set(PAUSED, until_ms)
    if paused > now() then
        -- Waiting servers sleep until the end of the earlier pause.
        wake(until_ms)
    end
    return '', true
end
