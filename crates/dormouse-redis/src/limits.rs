//! The bounds of the Redis backend; docs/limits.md lists them for users.

/// Priorities in use per topic: each is a zset.
pub const PRIORITIES_MAX: usize = 64;
/// Partitions of all topics ever registered: the shard is the high 24 bits of a job id, which stays
/// below 2^63.
pub const SHARDS_MAX: u32 = (1 << 23) - 1;
/// Partitions of a topic.
pub const PARTITIONS_MAX: u16 = 256;
/// Partitions of a new topic on a cluster by default.
pub const CLUSTER_PARTITIONS: u16 = 8;
/// Partitions of all locks. Fixed, because all servers must find a name in the same one.
pub const LOCK_PARTITIONS: u16 = 8;
/// Replicas that `Level::Replicated` may ask for.
pub const REPLICAS_MAX: u32 = 16;
/// Jobs that one script changes or reads, by weight: it bounds how long a script blocks Redis.
pub const BATCH_JOBS_MAX: usize = 128;
/// A script batch is executed within this time after it was sent, by Redis' clock, or never. Less
/// than `REPLY_TIMEOUT`, so that an `unconfirmed` change has happened or never will.
pub const BATCH_AGE_MS_MAX: u64 = 8_000;
/// The number of the first job of a partition is the time since this instant, 2026, in ms: a
/// partition that is created anew after Redis lost its data does not give numbers again.
pub const NUMBER_EPOCH_MS: u64 = 1_767_225_600_000;
/// Numbers begin at this one at most, reached in 2043: as many are left for jobs.
pub const NUMBER_START_MAX: u64 = 1 << 39;
/// Job numbers of a partition have 40 bits.
pub const NUMBER_MAX: u64 = (1 << 40) - 1;
/// How far beyond the last number that a server has seen other servers may have been when Redis
/// lost its data.
pub const NUMBER_MARGIN: u64 = 1 << 20;
/// How long the put of a dead letter is recognised: if all servers are away for longer between the
/// letter and the removal of its job, the letter is put twice.
pub const LETTER_MARKER_TTL_MS: u64 = 7 * 24 * 3_600 * 1_000;
/// The same for puts of a chain to other partitions than its own: so long it can be sent again.
pub const CHAIN_MARKER_TTL_MS: u64 = 600_000;
/// Redis forgets a sequence of script batches that was not used for this long.
pub const SEQUENCE_TTL_MS: u64 = 600_000;
