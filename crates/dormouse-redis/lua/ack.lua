-- ack: tokens (id c8, fence c8 each) in one argument, then '1' if a job is named twice, or ''.
-- Answers runs of tokens with the same result: count I2, result B (0 done, 2 gone, 3 lost),
-- attempts I4.
--
-- Fast path: the tokens are valid, the jobs have no keys and no spans and are of no ticks, their
-- leases are not the last ones and cannot have expired, done jobs are not kept, and no job is
-- parked if one has a group. Otherwise it answers nil once, and uses `slow` when executed again.

-- Reading the clock costs a command. It is not needed if the first lease expires later than this
-- after the server's time: no script travels that long.
local TRANSIT_MS_MAX = 10000
-- Where the group of a progress begins that is read from its second field on, see its FIELDS.
local GROUP_AT = 40

verbs.ack = function(at)
    local call, pack, sub, tokens = redis.call, struct.pack, string.sub, ARGV[at]
    local first_end = header[LEASE_END]
    local lapses = not (about_ms and first_end > about_ms + TRANSIT_MS_MAX) and first_end <= now()
    if not slow and (lapses or ARGV[at + 1] == '1' or ARGV[12] ~= '') then
        return nil
    end
    local ids, n = {}, #tokens / 16
    for i = 1, n do
        ids[i] = sub(tokens, i * 16 - 15, i * 16 - 8)
    end
    local progress = call('HMGET', KEYS[3], unpack(ids))
    local last, attempts, priority, bytes, flags, group -- of the previous job: many are equal
    local slots = {} -- of jobs with groups: members of g
    local answers, run, run_outcome, run_attempts = {}, 0, nil, nil
    -- `done`: ids by priority; nil as long as all are done and of one priority.
    local done, first_priority, left = nil, nil, 0
    for i = 1, n do
        local id, text, outcome = ids[i], progress[i], DONE
        local its = text and sub(text, 9)
        if text and its ~= last then
            last = its
            attempts, priority, bytes, flags = struct.unpack(PROGRESS_TO_ACK, its)
            group = bit.band(flags, GROUPED) ~= 0 and sub(its, GROUP_AT,
                GROUP_AT + 1 + struct.unpack('>I2', its, GROUP_AT)) or nil
        end
        if not text or flags ~= HELD and flags ~= HELD + GROUPED or slow
            or sub(text, 1, 8) ~= sub(tokens, i * 16 - 7, i * 16) then
            if not slow then
                return nil
            end
            outcome = slow.check_token(id, text, sub(tokens, i * 16 - 7, i * 16), priority, flags)
        end
        first_priority = first_priority or priority
        if not done and (outcome ~= DONE or priority ~= first_priority) then
            done = { [first_priority or 0] = { unpack(ids, 1, i - 1) } }
        end
        if outcome == DONE then
            left = left + bytes
            if group then
                slots[#slots + 1] = group .. id
                if slow then
                    slow.groups.leave(group, id, priority)
                elseif #slots == 1 and call('EXISTS', KEYS[13]) == 1 then
                    return nil -- it may be parked, or make room for one that is
                end
            end
            if done then
                done[priority] = done[priority] or {}
                table.insert(done[priority], id)
            end
        end
        local known = text and attempts or 0
        if outcome ~= run_outcome or known ~= run_attempts then
            if run > 0 then
                answers[#answers + 1] = pack('>I2BI4', run, run_outcome, run_attempts)
            end
            run, run_outcome, run_attempts = 0, outcome, known
        end
        run = run + 1
    end
    answers[#answers + 1] = pack('>I2BI4', run, run_outcome, run_attempts)
    local acked = 0
    for its_priority, members in pairs(done or { [priority] = ids }) do
        if #members > 0 then
            local lapsed = lapses and slow.count_lapsed(its_priority, members) or nil
            call('ZREM', Z[its_priority], unpack(members))
            if ARGV[12] == '' then
                call('HDEL', KEYS[2], unpack(members))
                call('HDEL', KEYS[3], unpack(members))
            else
                slow.keep_done(members, lapsed or {})
            end
            acked = acked + #members
        end
    end
    header[ACKS] = header[ACKS] + acked
    header[BYTES] = header[BYTES] - left
    if acked > 0 and header[WANTS_SLOT] > 0 then
        free_slot()
    end
    if #slots > 0 and not slow then
        call('ZREM', KEYS[12], unpack(slots))
        call('ZREM', KEYS[14], unpack(slots))
    end
    return table.concat(answers), acked > 0
end
