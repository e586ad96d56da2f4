-- peek: state B. The first job of that state: of ready jobs the one that would be reserved next, of
-- delayed jobs by due time, of dead and done ones by their end, of leased ones by expiry.
-- Answers: one item as get does.

verbs.peek = function(at)
    local state = unpack_struct('>B', ARGV[at])
    if state == DEAD then
        sweep()
    end
    local job = next_of(state)
    local found = job and (state == ACKED and find_done(job.id) or locate(job.id))
    if not found then
        return pack('>B', MISSING), false
    end
    return view(found.id, found.record, found.p and write_progress(found.p) or '',
        state_of(found), found.at, found.where == 'lapsed'), false
end
