//! The bounds of the Redis backend; docs/limits.md lists them for users.

/// Live priorities of a topic: a zset each.
pub const PRIORITIES_MAX: usize = 64;
/// Partitions of all topics, ever: the high bits of an id.
pub const SHARDS_MAX: u32 = (1 << 24) - 1;
/// Partitions a topic may have.
pub const PARTITIONS_MAX: u16 = 256;
/// Partitions of a topic on a cluster unless told otherwise.
pub const CLUSTER_PARTITIONS: u16 = 8;
/// Partitions that all locks are spread over, on every installation: who locks a name must come to
/// the same one as everybody else.
pub const LOCK_PARTITIONS: u16 = 8;
/// Replicas that a level may ask for.
pub const REPLICAS_MAX: u32 = 16;
