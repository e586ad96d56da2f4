//! Dormouse on Redis and Redis Cluster: any number of servers share one installation, and none is
//! special. Every operation is one bounded script on the keys of one partition; see `lua/`.
//!
//! Reading order: `lua/lib.lua` (keys and arguments), `dispatch` (from submissions to commands),
//! `fanout` (from commands to partitions), `partition` (batches of requests in one script), `codec`
//! (arguments and answers of each verb), `cluster` (the client: nodes, slots, connections).

// Time is an argument: few places read a clock, and they say so.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod backend;
mod clock;
mod cluster;
mod codec;
mod dispatch;
mod errors;
mod events;
mod fanout;
mod inbox;
mod keys;
pub mod limits;
mod partition;
mod script;
#[cfg(test)]
mod testing;
mod verify;
mod wire;

pub use backend::{Level, Options, RedisBackend};
pub use clock::ManualClock;
pub use cluster::check_url;
pub use verify::{Kind, Problem, ProblemStatus, VerifyOptions, VerifyReport, verify};
