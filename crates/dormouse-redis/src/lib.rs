//! Dormouse on Redis and Redis Cluster: any number of servers share one installation, and none is
//! special. Every operation is one bounded script on the keys of one partition; see `lua/`.
//!
//! Reading order: `lua/lib.lua` (keys and arguments), `dispatch` (from submissions to commands, and
//! from commands to partitions), `scheduler` (which requests go to a partition in one script, and
//! when), `partition` (performs what the scheduler decides), `codec` (arguments and answers of each
//! verb), `cluster` (the client: nodes, slots, connections).

// Time is an argument: few places read a clock, and they say so.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod backend;
mod clock;
mod cluster;
mod codec;
mod dispatch;
mod errors;
mod events;
mod inbox;
mod intake;
mod keys;
pub mod limits;
mod outbox;
mod partition;
mod scheduler;
mod script;
#[cfg(test)]
mod testing;
mod verify;
mod wire;

pub use backend::{Level, Options, RedisBackend};
pub use clock::ManualClock;
pub use cluster::check_url;
pub use verify::{Kind, Problem, ProblemStatus, VerifyOptions, VerifyReport, verify};
