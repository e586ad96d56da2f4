-- cancel: per item: target, unless_leased ('1' or '').
-- Answers per item: result B (0 done, 2 missing, 4 conflict), id c8, was B, at I6 (when it was due
-- or died; of a leased job when its lease would have expired).

verbs.cancel = function(at, arguments)
    local answers, wrote = {}, false
    for i = at, at + arguments - 1, 2 do
        local found, done = find_target(ARGV[i])
        local text
        if not found then
            text = missing_reply(done)
        elseif found.where == 'leased' and ARGV[i + 1] == '1' then
            text = change_reply(CONFLICT, found.id, state_of(found), found.at)
        else
            text = change_reply(DONE, found.id, state_of(found), found.at)
            note_lapse(found)
            if found.where == 'leased' then
                free_slot()
            end
            groups.leave(found.head.group, found.id, found.priority)
            call('ZREM', found.where == 'dead' and D or Z[found.priority], found.id)
            forget(found.id, found.head, found.p)
            count(CANCELS, 1)
            wrote = true
        end
        answers[#answers + 1] = text
    end
    return concat(answers), wrote
end
