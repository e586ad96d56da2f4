//! The bounds of the rules, the same on every backend. The server and the Redis backend have a
//! `limits.rs` of their own; docs/limits.md lists all of them for users.

/// Bytes of a topic name, at least 1.
pub const TOPIC_BYTES_MAX: usize = 200;
/// Bytes of a body.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// Bytes of a key, at least 1.
pub const KEY_BYTES_MAX: usize = 256;
/// Keys that start with this are the server's own: those of dead letters, and of chains on Redis.
pub const KEY_PREFIX_RESERVED: &[u8] = b"dormouse:";
/// Bytes of a group, at least 1.
pub const GROUP_BYTES_MAX: usize = 256;
/// Bytes of all header names and values of a job.
pub const HEADERS_BYTES_MAX: usize = 4 << 10;
/// Bytes kept of an error text; a longer one is cut.
pub const ERROR_BYTES_MAX: usize = 1 << 10;
/// Bytes of a dead job's error text in the header `dead-reason` of its letter.
pub const DEAD_REASON_BYTES_MAX: usize = 256;
/// Bytes that a dead letter may have in headers beyond those of its job: names, topic, reason, key
/// and numbers.
pub const DEAD_HEADERS_BYTES_MAX: usize = 1 << 10;
/// Topics in a row of dead topics.
pub const DEAD_TOPICS_MAX: usize = 16;
/// Jobs that one chain may put.
pub const CHAIN_PUTS_MAX: usize = 100;
/// Items of one batch.
pub const BATCH_MAX: usize = 4_096;
/// Bytes of an error text that an event carries.
pub const EVENT_ERROR_BYTES_MAX: usize = 200;
/// Jobs or topics of one page.
pub const PAGE_MAX: usize = 1_000;
/// Topics up to which the totals separate delayed from ready: each costs a read of every run.
pub const STATS_TOPICS_MAX: usize = 100;
/// Topics one reserve may name.
pub const RESERVE_TOPICS_MAX: usize = 1_000;
/// Jobs one reserve may ask for.
pub const RESERVE_MAX: usize = BATCH_MAX;
/// Longest wait of a reserve or lock.
pub const WAIT_MS_MAX: u64 = 60_000;
/// Bytes of one reply to reserve, list or get.
pub const REPLY_BYTES_MAX: u64 = 16 << 20;
/// Bytes of the largest job there can be: a reply stops where one more might not fit.
pub const JOB_BYTES_MAX: u64 =
    (BODY_BYTES_MAX + KEY_BYTES_MAX + GROUP_BYTES_MAX + HEADERS_BYTES_MAX + DEAD_HEADERS_BYTES_MAX)
        as u64;
/// Bytes of the jobs that a batch of puts may find under its keys: each is read whole, and all in
/// one step. As many as an HTTP request can put, twice.
pub const PUT_KEYED_BYTES_MAX: u64 = 32 << 20;
/// Leases at once.
pub const LEASED_JOBS_MAX: usize = 1_000_000;
/// Bytes of all leased jobs.
pub const LEASED_BYTES_MAX: u64 = 256 << 20;
/// Longest span that a rate counts by: a day.
pub const RATE_PER_MS_MAX: u64 = 24 * 3_600 * 1_000;
/// Jobs of a rate for each ms that it counts by: a million per second.
pub const RATE_JOBS_PER_MS_MAX: u64 = 1_000;
/// Jobs of a rate that may come at once.
pub const RATE_BURST_MAX: u64 = 1_000_000;
/// Reserves and locks waiting at once.
pub const WAITERS_MAX: usize = 100_000;
/// Longest delay: 100 years.
pub const DELAY_MS_MAX: u64 = 100 * 366 * 24 * 3_600 * 1_000;
/// Latest absolute time, ms since the epoch: the year 3000 and a little.
pub const AT_MS_MAX: u64 = 33_000_000_000_000;
/// Longest ttr, key_ttl, expires_after, dead_ttl, keep_done, lock ttl and pause: 100 years, as for
/// delays.
pub const TTL_MS_MAX: u64 = DELAY_MS_MAX;
/// Shortest ttr and lock ttl.
pub const TTR_MS_MIN: u64 = 1;
/// Entries of a backoff list.
pub const BACKOFF_LIST_MAX: usize = 64;
/// Thousandths of a delay that jitter may take away.
pub const JITTER_PERMILLE_MAX: u16 = 1_000;
/// Steps of a forecast.
pub const FORECAST_STEPS_MAX: usize = 1_000;
/// Bytes of a cron expression.
pub const CRON_BYTES_MAX: usize = 256;
/// Bytes of a zone's name.
pub const ZONE_BYTES_MAX: usize = 64;
/// Shortest `every` and `gap` of a rule.
pub const EVERY_MS_MIN: u64 = 100;
/// Longest `every` and `gap` of a rule: 100 years, as for delays.
pub const EVERY_MS_MAX: u64 = DELAY_MS_MAX;
/// Years in which the next tick of a rule is searched. The sparsest rule that comes at all, the
/// fifth Monday of February, is up to 40 years apart.
pub const TICK_AHEAD_YEARS_MAX: i64 = 45;
/// Ticks of one preview.
pub const PREVIEW_TICKS_MAX: usize = 1_000;
/// Ticks of a preview unless given.
pub const PREVIEW_TICKS_DEFAULT: usize = 10;
/// Longest jitter of a schedule.
pub const JITTER_MS_MAX: u64 = 24 * 3_600 * 1_000;
/// Schedules of one topic.
pub const TOPIC_SCHEDULES_MAX: u64 = 1_000_000;
/// Schedules of all topics.
pub const SCHEDULES_MAX: u64 = 10_000_000;
/// Ticks that one backfill may give.
pub const BACKFILL_TICKS_MAX: usize = 1_000;
/// A tick whose job was refused because the topic is full is tried again after an eighth of the
/// time that it is late, at least this...
pub const SCHEDULE_RETRY_MS_MIN: u64 = 1_000;
/// ...and at most this. A rule that cannot be read is read again after it.
pub const SCHEDULE_RETRY_MS_MAX: u64 = 60_000;
/// Things that ticks of schedules may cost one tick of the machine: waiting requests have the rest.
pub const SCHEDULE_TICK_MAX: usize = 256;
/// Deadlines that one tick of the machine meets, the jobs that die by them included: waiting
/// requests have the rest.
pub const DEADLINE_TICK_MAX: usize = 256;
/// Groups with limits that one tick of the machine looks at: waiting requests have the rest.
pub const GROUP_TICK_MAX: usize = 512;
/// Jobs with groups in the line of a topic that limits its groups; further ones that are put ready
/// are parked, so that whoever comes after them does not wait until they have been passed.
pub const GROUP_LINE_MAX: u64 = 128;
/// Parked schedules that one tick of the machine reviews.
pub const SCHEDULE_REVIEW_MAX: usize = 64;
/// Coming ticks that a look at a schedule tells.
pub const NEXT_TICKS: usize = 5;
/// Bytes of a lock's name and of its owner.
pub const LOCK_NAME_BYTES_MAX: usize = 200;
/// Locks held at once.
pub const LOCKS_MAX: usize = 1_000_000;
/// Topics with push at once.
pub const PUSHES_MAX: usize = 10_000;
/// Bytes of the record of a push.
pub const PUSH_RECORD_BYTES_MAX: usize = 64 << 10;
/// Bytes of records in one page of pushes; the last one may go beyond.
pub const PUSHES_PAGE_BYTES_MAX: usize = 1 << 20;
/// Attempts of jobs of a topic with push, where neither job nor topic says how many.
pub const PUSH_ATTEMPTS_MAX_DEFAULT: u32 = 12;
/// Topics alive at once.
pub const TOPICS_MAX: usize = 10_000_000;
/// How long a topic stays after it became empty, unset and unwatched. Callers do not see it any
/// more, but one that is filled and emptied all the time is not born each time.
pub const TOPIC_LINGER_MS: u64 = 1_000;
/// How long a key hold that is over may still rest; it is free all the same.
pub const HOLD_SWEEP_MS: u64 = 10_000;
/// Things one tick does before others get their turn. Leases that run out beyond it are not seen by
/// a reserve of the same instant, so it is not smaller.
pub const TICK_MAX: usize = 1_024;
/// Leases, dead jobs and the like that end in one ms while the disk is behind.
pub const TICK_BEHIND_MAX: usize = 64;
/// A job costs a tick one thing, and one more for each so many of its bytes.
pub const TICK_JOB_BYTES: usize = 4 << 10;
/// A request that waits costs a tick one thing, and one more for each so many of its topics.
pub const TICK_WAIT_TOPICS: usize = 8;
/// Jobs that one portion of a long command reads or moves: a millisecond.
pub const PORTION_JOBS: usize = 256;
/// Bytes of these jobs; the one that exceeds them is the last of its portion.
pub const PORTION_BYTES: u64 = 1 << 20;
/// Questions about a lane that one portion asks, counted for each source that is asked.
pub const PORTION_LOOKS: usize = 256;
/// Entries of a table in memory that one portion passes.
pub const PORTION_ENTRIES: usize = 4_096;
/// Commands that have portions to go.
pub const LONG_COMMANDS_MAX: usize = 1_000;
/// Requests waiting for the engine, in bytes; beyond it batches with a put get `busy`.
pub const INBOX_BYTES_MAX: usize = 64 << 20;
/// Requests waiting for the engine, in number.
pub const INBOX_REQUESTS_MAX: usize = 100_000;
/// Batches without a put are admitted up to this many times the limits: they take work away.
pub const INBOX_RELIEF: usize = 2;

/// Priority unless given; lower is first.
pub const PRIORITY_DEFAULT: u32 = 1_024;
/// Lease time unless given.
pub const TTR_MS_DEFAULT: u64 = 60_000;
/// Attempts unless given.
pub const ATTEMPTS_MAX_DEFAULT: u32 = 16;
