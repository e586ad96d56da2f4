-- Every batch removes a few of the dead jobs that dead_ttl and dead_max do not keep.
if (ARGV[9] ~= '' or ARGV[10] ~= '') and not cold then
    sweep(4)
end
