-- letters: most letters. Answers the jobs whose dead letters are to be sent, those first that died
-- first: count I2, each id c8, progress I2 + bytes, and a record.
-- end_letters: per letter: id c8, sent B (1 = it is in the dead topic; 0 = there was no room, so
-- that the job rests as dead). The answer is empty.

do
    verbs.letters = function(at)
        local answers, read = {}, 0
        for _, id in ipairs(call('ZRANGE', L, 0, ARGV[at] - 1)) do
            local record, progress = call('HGET', J, id), call('HGET', F, id)
            if not record or not progress then
                call('ZREM', L, id)
            elseif read <= RECORD_BYTES_MAX then
                add_record(id, record)
                answers[#answers + 1] = pack('>c8I2', id, #progress) .. progress
                read = read + #record
            end
        end
        return pack('>I2', #answers) .. concat(answers), false
    end

    -- The letter is sent. A job that is a letter itself keeps its key taken, or the letter before
    -- it could come again.
    local function end_sent(id, head, p)
        local is_held = head.key and head.key_ttl > 0 and is_own_key(head.key)
            and call('HGET', K, head.key) == id
        if is_held then
            hold_key(head.key, head.key_ttl)
            call('HDEL', J, id)
            call('HDEL', F, id)
        else
            erase(id, head, p)
        end
    end

    -- There is no room for the letter: the job rests as dead where it was.
    local function end_kept(id, head, p, died_at_ms)
        call('ZADD', D, died_at_ms, id)
        count(BYTES, head.bytes)
        if head.key and call('HGET', K, head.key) ~= id and band(p.flags, KEY_LOST) == 0 then
            p.flags = with(p.flags, KEY_LOST)
            call('HSET', F, id, write_progress(p))
        end
        trim_dead(2)
    end

    verbs.end_letters = function(at, arguments)
        for i = at, at + arguments - 1 do
            local id, sent = unpack_struct('>c8B', ARGV[i])
            local died = tonumber(call('ZSCORE', L, id) or nil)
            local record = died and call('HGET', J, id)
            call('ZREM', L, id)
            if record then
                local head, p = read_head(record), read_progress(call('HGET', F, id))
                if sent == 1 then
                    end_sent(id, head, p)
                else
                    end_kept(id, head, p, died)
                end
            end
        end
        return '', true
    end
end
