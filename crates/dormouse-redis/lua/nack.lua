-- nack, release: per token: id c8, fence I8, given B (1 delay, 2 priority, 4 error,
-- 8 uncounted: its session has ended), delay I6, priority I4; then the error.
-- Answers per token: result B (0 done, 1 died, 2 gone, 3 lost), due I6 (died: when), attempts I4.

-- Whether the lease has expired before its session ended. Then its attempt stays spent: otherwise
-- the job of a worker that always hangs until it is killed would never die.
local function is_over(found)
    return found.where == 'lapsed' or band(found.p.flags, RESUMED) ~= 0
end

local function end_lease(at, spends)
    local id, fence, given, delay, priority = unpack_struct('>c8I8BI6I4', ARGV[at])
    local found = locate(id)
    if not found then
        return pack('>BI6I4', GONE, 0, 0)
    elseif not holds_lease(found, fence) or band(given, UNCOUNTED) ~= 0 and is_over(found) then
        return pack('>BI6I4', LOST, 0, 0)
    end
    local p, head = found.p, found.head
    if found.where == 'lapsed' then
        p.expiries = p.expiries + 1
        count(EXPIRIES, 1)
    end
    if band(given, UNCOUNTED) == 0 then
        p.releases = p.releases + 1
    end
    if band(given, GIVEN_ERROR) ~= 0 then
        p.error = ARGV[at + 1]
    end
    if band(given, GIVEN_PRIORITY) ~= 0 then
        p.priority = priority
    end
    free_slot()
    groups.leave(head.group, id, found.priority)
    if spends and head.attempts_max ~= 0 and p.attempts >= head.attempts_max then
        count(NACKS, 1)
        bury(id, p, found.priority, now())
        return pack('>BI6I4', DIED, now(), p.attempts)
    end
    if spends then
        count(NACKS, 1)
        if band(given, GIVEN_DELAY) == 0 then
            delay = backoff_ms(id, p.attempts, head.backoff)
        end
    else
        count(RELEASES, 1)
        p.attempts = max(p.attempts - 1, 0)
        if band(given, GIVEN_DELAY) == 0 then
            delay = 0
        end
    end
    p.flags = without(without(p.flags, HELD), LAST)
    local due = after(delay)
    if p.priority ~= found.priority then
        call('ZREM', Z[found.priority], id)
    end
    call('ZADD', Z[p.priority], due, id)
    call('HSET', F, id, write_progress(p))
    note_deadline(id, head.span, due)
    wake(due)
    return pack('>BI6I4', DONE, due, p.attempts)
end

local function end_leases(at, arguments, spends)
    local answers = {}
    for i = at, at + arguments - 1, 2 do
        answers[#answers + 1] = end_lease(i, spends)
    end
    return concat(answers), true
end

verbs.nack = function(at, arguments)
    return end_leases(at, arguments, true)
end

verbs.release = function(at, arguments)
    return end_leases(at, arguments, false)
end
