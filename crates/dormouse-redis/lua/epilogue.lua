-- Wakes waiting servers, writes the header, and saves the answer in case the batch is repeated.

if ARGV[15] ~= '' and call('EXISTS', Q) == 1 then
    -- Other limits: all groups that have parked jobs are looked at.
    call('ZADD', I, ZONE + now(), REVIEW)
    set(LOOK_AT, 0)
end
if header[PUBLISHES] then
    call('SPUBLISH', ARGV[11], pack('>I8', header[WAITING]))
end
if ARGV[5] ~= '' then
    local colon = string.find(ARGV[5], ':', 1, true)
    call('HSET', S, 'v', sub(ARGV[5], 1, colon - 1), 'g', sub(ARGV[5], colon + 1))
    writes = true
end
local text = answers[2] and concat(answers) or answers[1] or ''
if writes then
    -- When the sequence was last used: accurate within 16 batches, as reading the clock costs a
    -- command.
    local seen = now_ms or about_ms or batch_number % 16 ~= 0 and saved_at or now()
    call('HSET', S, 'b', pack(HEADER, unpack(header)), sequence_field,
        pack(SAVED, batch_number, seen, #record_ids * 8) .. concat(record_ids) .. text)
    if not saved then
        -- A new sequence: remove those that were not used for so long that no copy of a batch of
        -- theirs can be executed any more (see prologue.lua).
        for _, field in ipairs(call('HKEYS', S)) do
            if sub(field, 1, 1) == 'r' and field ~= sequence_field then
                local _, last = unpack_struct('>I8I8', call('HGET', S, field))
                if last < now() - SEQUENCE_TTL_MS then
                    call('HDEL', S, field)
                end
            end
        end
    end
elseif header[CHANGED] then
    call('HSET', S, 'b', pack(HEADER, unpack(header)))
end
return { header[TICKS_DUE] and 'ticks' or 'done', now_ms or 0, text, unpack(records) }
