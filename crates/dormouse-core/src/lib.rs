//! The words and the rules of Dormouse, a durable delay queue.
//!
//! This crate is pure: no clock, no I/O, no threads, no async; `now` is an argument. Reading order:
//! the nouns (`time`, `job`, `topic`, `place`), then `fact`, then `machine` and `op/`. `tick`,
//! the instants of rules that repeat, stands alone; `schedule` builds on it.

pub mod backend;
pub mod backoff;
pub mod command;
pub mod error;
pub mod event;
pub mod fact;
pub mod holder;
pub mod image;
pub mod job;
pub mod limits;
pub mod machine;
pub mod meter;
pub mod op;
pub mod place;
pub mod rate;
pub mod refusal;
pub mod schedule;
pub mod share;
pub mod snapshot_map;
pub mod tick;
pub mod time;
pub mod timeline;
pub mod topic;

/// Maps and sets keyed by ids and names; the hash is seeded per process, so iteration order is
/// random: never let it reach an answer or a fact.
pub type Map<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
/// See [`Map`].
pub type Set<K> = std::collections::HashSet<K, foldhash::fast::RandomState>;
