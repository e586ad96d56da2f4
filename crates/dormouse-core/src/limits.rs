//! Every bound there is, in one place. docs/limits.md lists them for users.

/// Bytes of a topic name, at least 1.
pub const TOPIC_BYTES_MAX: usize = 200;
/// Bytes of a body.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// Bytes of a key, at least 1.
pub const KEY_BYTES_MAX: usize = 256;
/// Bytes of all header names and values of a job.
pub const HEADERS_BYTES_MAX: usize = 4 << 10;
/// Bytes kept of an error text; what is longer is cut.
pub const ERROR_BYTES_MAX: usize = 1 << 10;
/// Items of one batch.
pub const BATCH_MAX: usize = 4_096;
/// Jobs or topics of one page.
pub const PAGE_MAX: usize = 1_000;
/// Topics up to which the totals tell delayed from ready: each costs a look into every run.
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
pub const JOB_BYTES_MAX: u64 = (BODY_BYTES_MAX + KEY_BYTES_MAX + HEADERS_BYTES_MAX) as u64;
/// Leases at once.
pub const LEASED_JOBS_MAX: usize = 1_000_000;
/// Bytes of all leased jobs.
pub const LEASED_BYTES_MAX: u64 = 256 << 20;
/// Reserves and locks waiting at once.
pub const WAITERS_MAX: usize = 100_000;
/// Longest delay: 100 years.
pub const DELAY_MS_MAX: u64 = 100 * 366 * 24 * 3_600 * 1_000;
/// Latest absolute time, ms since the epoch: the year 3000 and a little.
pub const AT_MS_MAX: u64 = 33_000_000_000_000;
/// Longest ttr, key_ttl, dead_ttl, lock ttl and pause: 100 years, as for delays.
pub const TTL_MS_MAX: u64 = DELAY_MS_MAX;
/// Shortest ttr and lock ttl.
pub const TTR_MS_MIN: u64 = 1;
/// Entries of a backoff list.
pub const BACKOFF_LIST_MAX: usize = 64;
/// Steps of a forecast.
pub const FORECAST_STEPS_MAX: usize = 1_000;
/// Bytes of a lock's name and of its owner.
pub const LOCK_NAME_BYTES_MAX: usize = 200;
/// Locks held at once.
pub const LOCKS_MAX: usize = 1_000_000;
/// Topics alive at once.
pub const TOPICS_MAX: usize = 10_000_000;
/// How long a topic stays after it became empty, unset and unwatched. Nobody sees it any more, but
/// one that is filled and emptied all the time is not born each time.
pub const TOPIC_LINGER_MS: u64 = 1_000;
/// How long a key hold that is over may still rest; it is free all the same.
pub const HOLD_SWEEP_MS: u64 = 10_000;
/// Things one tick does before others get their turn.
pub const TICK_MAX: usize = 4_096;
/// Requests waiting for the engine, in bytes; beyond it batches with a put get `busy`.
pub const INBOX_BYTES_MAX: usize = 64 << 20;
/// Requests waiting for the engine, in number.
pub const INBOX_REQUESTS_MAX: usize = 100_000;
/// Batches without a put are taken up to so many times as much: they take work away.
pub const INBOX_RELIEF: usize = 2;

/// Priority unless given; lower is first.
pub const PRIORITY_DEFAULT: u32 = 1_024;
/// Lease time unless given.
pub const TTR_MS_DEFAULT: u64 = 60_000;
/// Attempts unless given.
pub const ATTEMPTS_MAX_DEFAULT: u32 = 16;

// Of the Redis backend.

/// Live priorities of a topic: a zset each.
pub const REDIS_PRIORITIES_MAX: usize = 64;
/// Partitions of all topics, ever: the high bits of an id.
pub const REDIS_SHARDS_MAX: u32 = (1 << 24) - 1;
/// Partitions a topic may have.
pub const REDIS_PARTITIONS_MAX: u16 = 256;
/// Partitions of a topic on a cluster unless told otherwise.
pub const REDIS_CLUSTER_PARTITIONS: u16 = 8;
/// Partitions that all locks are spread over, on every installation: who locks a name must come to
/// the same one as everybody else.
pub const REDIS_LOCK_PARTITIONS: u16 = 8;
/// Replicas that a level may ask for.
pub const REDIS_REPLICAS_MAX: u32 = 16;

// Of the server.

/// Bytes of one HTTP request's body: a batch of puts.
pub const HTTP_BODY_BYTES_MAX: usize = 16 << 20;
/// Bytes of one HTTP request's line and headers.
pub const HTTP_HEAD_BYTES_MAX: usize = 32 << 10;
/// Headers of one HTTP request.
pub const HTTP_HEADERS_MAX: usize = 100;
/// Parameters of one HTTP request's query.
pub const HTTP_PARAMS_MAX: usize = 200;
/// Bytes of all larger request bodies that are in the server's hands; beyond it `busy`.
pub const HTTP_BODIES_BYTES_MAX: usize = 64 << 20;
/// Bytes up to which a request body counts as small.
pub const HTTP_SMALL_BYTES_MAX: usize = 64 << 10;
/// Bytes of all small request bodies, so that uploads are not in the way of acks.
pub const HTTP_SMALL_BODIES_BYTES_MAX: usize = 32 << 20;
/// How deep a JSON body may be nested.
pub const JSON_DEPTH_MAX: usize = 64;
/// Bytes of all answers that clients have not read yet; beyond it `busy`.
pub const HTTP_ANSWERS_BYTES_MAX: usize = 48 << 20;
/// Pages of jobs or topics that are read from the store and written as JSON at once; others wait.
pub const HTTP_PAGES_MAX: usize = 1;
/// Time for a request's line and headers, from their first byte on.
pub const HTTP_HEAD_MS_MAX: u64 = 10_000;
/// Time a connection may be silent between requests; before the first one, `HTTP_HEAD_MS_MAX`.
pub const HTTP_IDLE_MS_MAX: u64 = 75_000;
/// Time for a request's body, besides what its size gives it.
pub const HTTP_BODY_MS_MAX: u64 = 10_000;
/// The slowest a large body may come.
pub const HTTP_BODY_BYTES_PER_S_MIN: u64 = 16 << 10;
/// Time in which a client must take at least a byte of its answer.
pub const HTTP_STALL_MS_MAX: u64 = 20_000;
/// Connections at once, unless configured.
pub const CONNECTIONS_MAX_DEFAULT: usize = 10_000;
/// Events kept for clients that come back.
pub const EVENTS_KEPT: usize = 16_384;
/// Clients that follow the events at once.
pub const EVENT_STREAMS_MAX: usize = 100;
/// Topics with figures of their own in the metrics; the others are added up.
pub const METRICS_TOPICS_MAX: usize = 200;

// Of the protocols of pipelined commands.

/// Bytes of commands that one connection's turn takes; a single command may be larger.
pub const TURN_BYTES_MAX: usize = 256 << 10;
/// Bytes of commands that have come and are not read yet, of all connections; beyond it those that
/// add most are closed.
pub const INPUTS_BYTES_MAX: usize = 64 << 20;
/// Bytes of commands that a connection may hold without asking whether there is room.
pub const INPUT_FREE_BYTES: usize = 4 << 10;
/// Time for the rest of a command, besides what its size gives it.
pub const COMMAND_MS_MAX: u64 = 10_000;
/// Arguments of a RESP command: an ack of a whole batch fits.
pub const RESP_ARGUMENTS_MAX: usize = 2 * BATCH_MAX;
/// Bytes of a RESP command: the largest job fits, with all its options.
pub const RESP_COMMAND_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;
/// Bytes up to which a larger RESP command is let pass, to be told that it is too large.
pub const RESP_SKIPPED_BYTES_MAX: usize = 16 << 20;
/// Bytes of a RESP command that is a line of words.
pub const RESP_LINE_BYTES_MAX: usize = 64 << 10;
/// Arguments of a RESP command of who has not shown a token yet, where one is wanted.
pub const RESP_GUEST_ARGUMENTS_MAX: usize = 10;
/// Bytes of such a command.
pub const RESP_GUEST_BYTES_MAX: usize = 16 << 10;
/// Bytes of answers that are gathered before they are sent.
pub const OUTPUT_BYTES: usize = 64 << 10;

// Of the beanstalkd protocol.

/// Bytes of a line, its end included.
pub const BEANSTALK_LINE_BYTES_MAX: usize = 224;
/// Bytes of a body, unless configured.
pub const BEANSTALK_JOB_BYTES_MAX_DEFAULT: usize = 65_535;
/// Tubes that connections use or watch, at once.
pub const BEANSTALK_TUBES_MAX: usize = 100_000;
/// Tubes that nobody uses or watches any more whose counts and place in lists are kept.
pub const BEANSTALK_IDLE_TUBES_MAX: usize = 10_000;
/// Topics that one command looks at: `list-tubes` and `stats`; and names that a list has.
pub const BEANSTALK_LISTED_TUBES_MAX: usize = 10_000;
/// Bytes of such a list.
pub const BEANSTALK_LIST_BYTES_MAX: usize = 1 << 20;
