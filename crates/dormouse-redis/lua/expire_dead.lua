-- Dead jobs that the settings do not keep go by and by.
if (ARGV[9] ~= '' or ARGV[10] ~= '') and not cold then
    sweep(4)
end
