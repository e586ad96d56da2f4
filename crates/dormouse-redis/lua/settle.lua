-- Looks at groups that may have room, before anything else looks at them.
if header[LOOK_AT] < NEVER and header[LOOK_AT] <= now() then
    out_of_memory() -- tested before the first write
    groups.settle()
end
