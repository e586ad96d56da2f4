-- Does the verb, and closes the books if it changed something.

local answer = verbs[ARGV[12]](14, tonumber(ARGV[13]))
if books[CHANGED] then
    call('HSET', S, 'b', pack(BOOKS, unpack(books)))
end
if books[PUBLISHES] then
    call('SPUBLISH', ARGV[11], pack('>I8', books[WAITING]))
end
table.insert(answer, 1, 'done')
return answer
