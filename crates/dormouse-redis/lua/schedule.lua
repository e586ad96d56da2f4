-- Schedules in n: revision I8, which grows with every write; id c8 of the newest job; then what
-- only servers read: created_at I6, record. Servers plan; scripts compare and store.
--
-- An entry in an answer: name I2 + bytes, alive B (1 = its newest job lives), score I8, then I4 +
-- bytes as in n.

local NEWEST_AT, NEWEST_END = 9, 16
-- Bytes of entries after which an answer ends.
local ENTRIES_BYTES_MAX = 65536

-- Whether a job waits, is leased, or is between two attempts.
local function is_alive(id)
    local found = id ~= NO_JOB and locate(id)
    return found and found.where ~= 'dead' or false
end

local function has_living_job(value)
    return is_alive(sub(value, NEWEST_AT, NEWEST_END))
end

local function schedule_entry(name, value, alive)
    local score = tonumber(call('ZSCORE', T, name) or 0)
    return pack('>I2', #name) .. name .. pack('>BI8I4', alive and 1 or 0, score, #value) .. value
end
