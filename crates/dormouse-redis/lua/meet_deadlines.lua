-- Lets jobs die that were not taken in time, before anything else looks at them.
if header[DEADLINE] < NEVER and header[DEADLINE] <= now() then
    out_of_memory() -- tested before the first write
    meet_deadlines(SWEEP)
end
