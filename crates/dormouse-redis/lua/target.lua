-- Shared by verbs on single jobs: how a job is named, and the result of a change.
--
-- A target is one argument: 'i' and the id c8, or 'k' and the key.
-- UNKNOWN_PRIORITY: the job's priority has no zset in KEYS. The server adds the priority, which is
-- in the answer, and repeats the verb.

-- The located job, or nil and the job if it is done. A key that is only held names no job.
local function find_target(text)
    local name = sub(text, 2)
    if sub(text, 1, 1) == 'k' then
        name = call('HGET', K, name)
    end
    if not name or #name ~= 8 then
        return nil
    end
    local found = locate(name)
    return found, not found and find_done(name) or nil
end

-- Answer per item of cancel, reschedule and revive: result B, id c8, state B before, at I6. If
-- there is no such job, the id is 0, or that of one that is done.
local function change_reply(outcome, id, was, at)
    return pack('>Bc8BI6', outcome, id, was, at)
end

local function missing_reply(done)
    return change_reply(GONE, done and done.id or '\0\0\0\0\0\0\0\0', NO_STATE, 0)
end

-- Counts the expiry of a located job's lease, if it has expired.
local function note_lapse(found)
    if found.where == 'lapsed' then
        found.p.expiries = found.p.expiries + 1
        count(EXPIRIES, 1)
    end
end
