-- peek: state B. The next job of that state: ready as reserve would give it, delayed by due time, dead
-- by age, leased by expiry.
-- Answers: one item as get does.

verbs.peek = function(at)
    local seen = unpack_struct('>B', ARGV[at])
    if seen == DEAD then
        sweep()
    end
    local job = next_of(seen)
    local found = job and locate(job.id)
    if not found then
        return pack('>B', MISSING), false
    end
    return view(found.id, found.record, found.p and write_progress(found.p) or '', state_of(found),
        found.at, found.where == 'lapsed'), false
end
