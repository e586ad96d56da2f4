-- extend: per token one argument: id c8, fence I8, ttr I6 (0 = the lease's own length).
-- Answers per token: result B (0 done, 2 gone, 3 lost), expires_at I6.

verbs.extend = function(at, arguments)
    local answers = {}
    for i = at, at + arguments - 1 do
        local id, fence, ttr = unpack_struct('>c8I8I6', ARGV[i])
        local found = locate(id)
        if not found then
            answers[#answers + 1] = pack('>BI6', GONE, 0)
        elseif not holds_lease(found, fence) then
            answers[#answers + 1] = pack('>BI6', LOST, 0)
        else
            local p = found.p
            if found.where == 'lapsed' then
                -- The job was not reserved since: the same lease continues, with the job's own ttr.
                p.expiries = p.expiries + 1
                p.ttr = found.head.ttr
                p.flags = with(p.flags, RESUMED)
                count(EXPIRIES, 1)
                call('HSET', F, id, write_progress(p))
            end
            local expires_at = after(ttr > 0 and ttr or p.ttr)
            local zone = band(p.flags, LAST) ~= 0 and 2 or 1
            call('ZADD', Z[found.priority], zone * ZONE + expires_at, id)
            if zone == 1 then
                note_deadline(id, found.head.span, expires_at)
                note_expiry(expires_at)
                wake(expires_at)
            end
            answers[#answers + 1] = pack('>BI6', DONE, expires_at)
        end
    end
    return concat(answers), true
end
