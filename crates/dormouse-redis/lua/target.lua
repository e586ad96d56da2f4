-- What verbs on single jobs have in common: how a job is named and what became of it.
--
-- A target is one argument: 'i' and the id c8, or 'k' and the key.
-- Outcomes besides those of tokens (DONE, GONE, LOST): CONFLICT, and UNKNOWN_PRIORITY: the job's
-- priority has no zset in KEYS; whoever asks adds the priority, which is given with it, and repeats.

-- The located job of this target, or nil. A key that is only held is no job's.
local function find_target(text)
    local name = sub(text, 2)
    if sub(text, 1, 1) == 'k' then
        name = call('HGET', K, name)
    end
    return name and #name == 8 and locate(name) or nil
end

-- Answer per item of cancel, reschedule and revive: outcome B, id c8, was B (conflict: is), at I6.
local function moved(outcome, id, was, at)
    return pack('>Bc8BI6', outcome, id, was, at)
end

local function nothing_moved()
    return moved(GONE, '\0\0\0\0\0\0\0\0', NO_STATE, 0)
end

-- The lease of a located job ran out, which nobody has noted so far: now it is.
local function note_lapse(found)
    if found.where == 'lapsed' then
        found.p.expiries = found.p.expiries + 1
        count(EXPIRIES, 1)
    end
end
