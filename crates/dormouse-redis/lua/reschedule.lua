-- reschedule: per item: target, then clock B (0 delay, 1 at, 2 run now), delay or at I6.
-- Answers per item: result B (0 done, 2 missing, 4 conflict), id c8, was B, due I6.

verbs.reschedule = function(at, arguments)
    local answers, wrote = {}, false
    for i = at, at + arguments - 1, 2 do
        local clock, due = unpack_struct('>BI6', ARGV[i + 1])
        local found, done = find_target(ARGV[i])
        local text
        if not found then
            text = missing_reply(done)
        elseif found.where == 'leased' or found.where == 'dead' then
            text = change_reply(CONFLICT, found.id, state_of(found), found.at)
        else
            if clock == CLOCK_DELAY then
                due = after(due)
            elseif clock == CLOCK_NOW then
                due = now()
            end
            text = change_reply(DONE, found.id, state_of(found), due)
            local p = found.p
            if clock == CLOCK_NOW then
                p = p or fresh_progress(found.head)
                p.kicks = p.kicks + 1
            end
            if found.where == 'lapsed' then
                -- The token of the expired lease was still valid; it is no longer.
                note_lapse(found)
                p.flags = without(p.flags, HELD)
            end
            if clock == CLOCK_NOW or found.where == 'lapsed' then
                call('HSET', F, found.id, write_progress(p))
            end
            groups.leave(found.head.group, found.id, found.priority)
            call('ZADD', Z[found.priority], due, found.id)
            note_deadline(found.id, found.head.span, due)
            wake(due)
            wrote = true
        end
        answers[#answers + 1] = text
    end
    return concat(answers), wrote
end
