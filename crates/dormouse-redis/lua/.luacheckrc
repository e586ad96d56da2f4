-- For the step `luacheck` of `cargo xtask test`, which checks one file at a time: syntax, and names
-- that no file of a script has. A test in script.rs checks the whole scripts, as Redis gets them:
-- there every name must be declared before it is used.
--
-- Not to be run in this directory: luacheck would take lanes.lua for a library of that name.
std = 'lua51'
max_line_length = 100

-- Of Redis.
read_globals = { 'redis', 'struct', 'cjson', 'cmsgpack', 'bit', 'KEYS', 'ARGV' }

-- Local variables of a script that several of its files change.
globals = {
    'answers', 'at', 'came_late', 'flow', 'header', 'lease_terms', 'record_ids', 'records', 'slow', 'verbs',
    'writes',
}

-- Local variables and functions that one file of a script declares and others use.
for name in string.gmatch([[
    about_ms add add_record after backoff_ms band batch_number bounded bury call change_reply
    check_job check_lock cold concat count count_jobs erase exceeds_last_number failure find_all
    find_done find_target floor forget format fraction free_slot fresh_progress group_of groups
    had_number has_key has_living_job has_lost_key held_until hold_key holds_lease invalid_fields
    is_alive is_before is_local_id is_orphan_key is_orphan_parked is_orphan_slot key_owner lanes_of
    late_deadline late_lease_end locate mark marked marker_of max meet_deadlines memory_is_out
    merged merged_back min missing_reply next_fence next_of note_deadline note_expiry note_lapse
    note_rest now now_ms number_of out_of_memory pack parked_member pcall_redis read_head
    read_progress resolve_conflict saved saved_at schedule_entry sequence_field set settle_tick
    settle_tick_of state_of sub sweep sweep_holds trim_dead trim_done unpack_struct view wake wanted
    with without write_progress
]], '%S+') do
    read_globals[#read_globals + 1] = name
end

ignore = {
    -- Constants of codes.rs and of other files, and the keys of a partition: tests in script.rs
    -- check that they exist.
    '113/[A-Z][A-Z_]*',
    -- Declared for other files.
    '211', '221', '231', '241', '311', '331',
}
