-- ack: tokens (id c8, fence c8 each) in one argument, then '1' if a job is named twice, or ''.
-- Answers in runs of tokens that came to the same: how many I2, outcome B (0 done, 2 gone, 3 lost),
-- attempts I4.
--
-- Tokens that are good, of jobs without keys, whose lease is not the last one and cannot have run out,
-- need nothing of the slow. Most are like that.

-- What ack wants to know of a progress, without its fence: attempts, priority, bytes, flags.
local HOLD = '>I4I4xxxxxxxxxxxxxxxxxxxxI4xxxxxxB'

-- To ask the clock is a command of its own, which an end that is far enough away spares: no script is so
-- long on its way.
local WAY_MS = 10000

verbs.ack = function(at)
    local call, pack, sub, tokens = redis.call, struct.pack, string.sub, ARGV[at]
    local first_end = header[LEASE_END]
    local lapses = not (about_ms and first_end > about_ms + WAY_MS) and first_end <= now()
    if not slow and (lapses or ARGV[at + 1] == '1') then
        return nil
    end
    local ids, n = {}, #tokens / 16
    for i = 1, n do
        ids[i] = sub(tokens, i * 16 - 15, i * 16 - 8)
    end
    local progress = call('HMGET', KEYS[3], unpack(ids))
    local last, attempts, priority, bytes, flags -- of the progress before: many have the same
    local answers, run, run_outcome, run_attempts = {}, 0, nil, nil
    local done, first_priority, left = nil, nil, 0 -- `done` only if not all are done and of one priority
    for i = 1, n do
        local id, text, outcome = ids[i], progress[i], DONE
        local its = text and sub(text, 9)
        if text and its ~= last then
            last = its
            attempts, priority, bytes, flags = struct.unpack(HOLD, its)
        end
        if not text or flags ~= HELD or slow or sub(text, 1, 8) ~= sub(tokens, i * 16 - 7, i * 16) then
            if not slow then
                return nil
            end
            outcome = slow.judge(id, text, sub(tokens, i * 16 - 7, i * 16), priority, flags)
        end
        first_priority = first_priority or priority
        if not done and (outcome ~= DONE or priority ~= first_priority) then
            done = { [first_priority or 0] = { unpack(ids, 1, i - 1) } }
        end
        if outcome == DONE then
            left = left + bytes
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
            if lapses then
                slow.count_lapsed(its_priority, members)
            end
            call('ZREM', Z[its_priority], unpack(members))
            call('HDEL', KEYS[2], unpack(members))
            call('HDEL', KEYS[3], unpack(members))
            acked = acked + #members
        end
    end
    header[ACKS] = header[ACKS] + acked
    header[BYTES] = header[BYTES] - left
    return table.concat(answers), acked > 0
end
