-- list: state B, most jobs I2, most bytes of jobs I6, order B (LIST_USUAL, LIST_DUE, LIST_NEWEST),
-- from I6, to I6, then the cursor: '' or the first job of the page: priority I4, instant I6, id c8.
-- At most BATCH_JOBS_MAX jobs per call, of those in [from, to).
-- LIST_DUE: waiting jobs of all priorities by due, id. LIST_NEWEST: dead and done ones, the last
-- one first; the cursor is then the last job of the page before.
-- Waiting jobs by priority, due, id; dead and done ones by their end, id; leased ones by expiry, id
-- (the cursors of these have priority 0).
-- Answers: count I2, each as get does, then B (0 = the end, 1 = there are more, 2 = the next does
-- not fit) and the cursor of the next one.

verbs.list = function(at)
    local state, most, room, order, low, high = unpack_struct('>BI2I6BI6I6', ARGV[at])
    local from = { priority = 0, at = 0, id = '' }
    if ARGV[at + 1] ~= '' then
        from.priority, from.at, from.id = unpack_struct('>I4I6c8', ARGV[at + 1])
    end
    most = min(most, BATCH_JOBS_MAX)
    local answers, next_job, last_job, why = {}, nil, nil, LIST_END

    -- Answers the jobs of these lanes from (from_at, from_id) on; false = the page is full, or some
    -- were passed over and there may be more behind them.
    local function answer(lanes, from_at, from_id)
        local read = order == LIST_NEWEST and merged_back or merged
        local count = most - #answers + 1
        local jobs = read(bounded(lanes, low, high), from_at, from_id, count)
        for _, job in ipairs(jobs) do
            if #answers == most then
                next_job, why = job, LIST_MORE
                return false
            end
            local record, progress, died = call('HGET', J, job.id), call('HGET', F, job.id), job.at
            if record and (state == DEAD and job.lane.priority
                or state == READY and header[DEADLINE] <= now()) then
                -- It may have died unnoticed.
                local found = locate(job.id)
                record = found and (found.where == 'dead') == (state == DEAD) and record
                progress = found and found.p and write_progress(found.p)
            end
            if record then
                room = room - read_head(record).bytes
                if room < 0 then
                    next_job, why = job, LIST_NO_ROOM
                    return false
                end
                answers[#answers + 1] = view(job.id, record, progress or '', state, died,
                    state == READY and (job.lane.zone == ZONE or job.lane.zone == 4 * ZONE))
            end
            last_job = job
        end
        if #jobs == count then
            local behind = SHARD .. pack('>I5', number_of(last_job.id) + 1)
            next_job, why = { at = last_job.at, id = behind, lane = last_job.lane }, LIST_MORE
            return false
        end
        return true
    end

    if order == LIST_NEWEST and from.id == '' then
        from.at = NEVER
    end
    if state >= LEASED or order == LIST_DUE then
        if state == DEAD then
            sweep()
        end
        answer(lanes_of(state, PRIORITIES), from.at, from.id)
    else
        for _, priority in ipairs(PRIORITIES) do
            local goes_on = true
            if priority == from.priority then
                goes_on = answer(lanes_of(state, { priority }), from.at, from.id)
            elseif priority > from.priority then
                goes_on = answer(lanes_of(state, { priority }), 0, '')
            end
            if not goes_on then
                break
            end
        end
    end
    local cursor = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
    if next_job and order == LIST_NEWEST then
        next_job = last_job or { at = from.at, id = from.id }
    end
    if next_job then
        local priority = order == LIST_USUAL and state < LEASED and next_job.lane.priority or 0
        cursor = pack('>I4I6c8', priority, next_job.at, next_job.id)
    end
    return pack('>I2', #answers) .. concat(answers) .. pack('>B', why) .. cursor, false
end
