-- kill: per item: target (or 't', id c8, fence I8: a leased job by its token), then given B
-- (2 priority, 4 error), priority I4, then the error.
-- Answers per item: result B (0 done, 2 missing or gone, 3 lost, 4 conflict), id c8, state B
-- before.

verbs.kill = function(at, arguments)
    local answers, wrote = {}, false
    for i = at, at + arguments - 1, 3 do
        local given, priority = unpack_struct('>BI4', ARGV[i + 1])
        local found, outcome, done
        if sub(ARGV[i], 1, 1) == 't' then
            local id, fence = unpack_struct('>c8I8', ARGV[i], 2)
            found = locate(id)
            outcome = found and (holds_lease(found, fence) and DONE or LOST)
        else
            found, done = find_target(ARGV[i])
            local is_resting = found and found.where ~= 'leased' and found.where ~= 'dead'
            outcome = found and (is_resting and DONE or CONFLICT)
        end
        if not found then
            local id = done and done.id or '\0\0\0\0\0\0\0\0'
            answers[#answers + 1] = pack('>Bc8B', GONE, id, NO_STATE)
        else
            answers[#answers + 1] = pack('>Bc8B', outcome, found.id, state_of(found))
        end
        if outcome == DONE then
            if found.where == 'leased' then
                free_slot()
            end
            local p = found.p or fresh_progress(found.head)
            note_lapse(found)
            if band(given, GIVEN_PRIORITY) ~= 0 then
                p.priority = priority
            end
            if band(given, GIVEN_ERROR) ~= 0 then
                p.error = ARGV[i + 2]
            end
            bury(found.id, p, found.priority, now())
            wrote = true
        end
    end
    return concat(answers), wrote
end
