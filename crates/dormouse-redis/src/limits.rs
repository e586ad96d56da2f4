//! The bounds that only Redis has; docs/limits.md lists them.

/// Live priorities of a topic: a zset each.
pub(crate) const PRIORITIES_MAX: usize = 64;
/// Shards of the installation: the high bits of an id.
pub(crate) const SHARDS_MAX: u32 = (1 << 24) - 1;
/// Partitions of a topic on a cluster unless told otherwise.
pub(crate) const CLUSTER_PARTITIONS: u16 = 8;
/// Partitions that all locks are spread over, on every installation: who locks a name must come to
/// the same one as everybody else.
pub(crate) const LOCK_PARTITIONS: u16 = 8;
/// Partitions a topic may have.
pub(crate) const PARTITIONS_MAX: u16 = 256;
