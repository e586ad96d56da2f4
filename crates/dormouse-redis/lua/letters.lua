-- letters: most letters. Answers the jobs whose dead letters are to be sent, those first that died
-- first: letters beyond these I8, the topic they go to I2 + bytes, count I2, each id c8, progress
-- I2 + bytes, and a record.
-- end_letters: per letter: id c8, kills I4 (of its deaths this one), sent B (1 = it is in the dead
-- topic; 0 = there was no room, so that the job rests as dead). The answer is empty.
-- give_up_letter, in the dead topic: marker of the letter's put, how long it is held. Answers the
-- id c8 of the letter if it was put; else it never will be, and the answer is NO_JOB.
--
-- A letter that was handed out is *begun*, in zone 1 of l: it may be in the dead topic already. All
-- begun letters go to the same topic, named in s, until they have ended, whatever the settings say.

do
    -- There is no room for the letter, or no dead topic: the job rests as dead where it was.
    local function rest_as_dead(id, record, died_at_ms)
        local head, p = read_head(record), read_progress(call('HGET', F, id))
        call('ZADD', D, died_at_ms, id)
        count(BYTES, head.bytes)
        if head.key and call('HGET', K, head.key) ~= id and band(p.flags, KEY_LOST) == 0 then
            p.flags = with(p.flags, KEY_LOST)
            call('HSET', F, id, write_progress(p))
        end
        trim_dead(2)
    end

    -- Letters that are not begun, at most so many. Without a dead topic they are none any more.
    local function begin_letters(most, ids)
        local waiting = call('ZRANGE', L, 0, NEVER_TEXT, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
        for i = 1, #waiting, 2 do
            local id, died_at_ms = waiting[i], tonumber(waiting[i + 1])
            if ARGV[13] ~= '' then
                call('ZADD', L, ZONE + died_at_ms, id)
                ids[#ids + 1] = id
            else
                local record = call('HGET', J, id)
                call('ZREM', L, id)
                if record then
                    rest_as_dead(id, record, died_at_ms)
                end
            end
        end
        if #ids > 0 then
            call('HSET', S, 'l', ARGV[13])
        end
    end

    verbs.letters = function(at)
        local most = tonumber(ARGV[at])
        local ids = call('ZRANGE', L, ZONE, '+inf', 'BYSCORE', 'LIMIT', 0, most)
        local topic = call('HGET', S, 'l') or ''
        if #ids == 0 or topic == ARGV[13] and #ids < most then
            topic = ARGV[13]
            begin_letters(most - #ids, ids)
        end
        local answers, read = {}, 0
        for _, id in ipairs(ids) do
            local record, progress = call('HGET', J, id), call('HGET', F, id)
            if not record or not progress then
                call('ZREM', L, id)
            elseif read <= RECORD_BYTES_MAX then
                add_record(id, record)
                answers[#answers + 1] = pack('>c8I2', id, #progress) .. progress
                read = read + #record
            end
        end
        return pack('>I8I2', call('ZCARD', L) - #answers, #topic) .. topic
            .. pack('>I2', #answers) .. concat(answers), true
    end

    verbs.end_letters = function(at, arguments)
        for i = at, at + arguments - 1 do
            local id, kills, sent = unpack_struct('>c8I4B', ARGV[i])
            local score = tonumber(call('ZSCORE', L, id) or nil)
            local record, progress = call('HGET', J, id), call('HGET', F, id)
            local p = score and record and progress and read_progress(progress)
            -- One of an earlier death has ended: the job was revived since then.
            if p and p.kills == kills then
                call('ZREM', L, id)
                if sent == 1 then
                    erase(id, read_head(record), p)
                else
                    rest_as_dead(id, record, score % ZONE)
                end
            end
        end
        return '', true
    end

    verbs.give_up_letter = function(at)
        local marker = ARGV[at]
        local id = marked(marker)
        if not id then
            id = NO_JOB
            mark(marker, id, tonumber(ARGV[at + 1]))
        end
        return id, true
    end
end
