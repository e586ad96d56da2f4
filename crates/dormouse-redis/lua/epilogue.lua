-- Closes the header and keeps the answer for a request that is repeated.

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
    -- When this server was seen last: not every verb needs the clock, so now and then will do.
    local seen = now_ms or about_ms or number % 16 ~= 0 and kept_at or now()
    call('HSET', S, 'b', pack(HEADER, unpack(header)), server,
        pack('>I8I8I4', number, seen, #recorded * 8) .. concat(recorded) .. text)
    if not kept then
        -- A name not seen here before: those not seen for ten minutes are gone.
        for _, field in ipairs(call('HKEYS', S)) do
            if sub(field, 1, 1) == 'r' and field ~= server then
                local _, last = unpack_struct('>I8I8', call('HGET', S, field))
                if last < now() - 600000 then
                    call('HDEL', S, field)
                end
            end
        end
    end
elseif header[CHANGED] then
    call('HSET', S, 'b', pack(HEADER, unpack(header)))
end
return { 'done', now_ms or 0, text, unpack(records) }
