//! The names of all keys: a small fixed set per partition under one hash tag, none per job.

use bytes::Bytes;

/// The prefix of every key.
pub(crate) const PREFIX: &str = "dormouse:";

/// The hash tag of a topic's partition. Topic names contain no braces, so none can choose its slot.
pub(crate) fn topic_tag(topic: &str, partition: u16) -> String {
    format!("{topic}/{partition}")
}

/// The hash tag of a partition of locks. No topic name begins with `-`.
pub(crate) fn lock_tag(partition: u16) -> String {
    format!("-lock/{partition}")
}

/// The hash tag of the register of topics.
pub(crate) const REGISTER_TAG: &str = "-topics";

/// A key of the partition with this tag.
pub(crate) fn key(tag: &str, name: &str) -> Bytes {
    Bytes::from(format!("{PREFIX}{{{tag}}}:{name}"))
}

/// The fixed keys of a partition, in the order of KEYS.
pub(crate) fn fixed(tag: &str) -> [Bytes; 15] {
    ["s", "j", "f", "d", "k", "h", "t", "n", "e", "o", "l", "g", "q", "i", "u"]
        .map(|name| key(tag, name))
}

/// The zset of a priority.
pub(crate) fn priority(tag: &str, priority: u32) -> Bytes {
    key(tag, &format!("z{priority}"))
}

/// The channel of a partition: scripts publish when a job becomes visible earlier than known.
pub(crate) fn channel(tag: &str) -> Bytes {
    key(tag, "w")
}
