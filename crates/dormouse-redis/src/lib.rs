//! Dormouse on Redis and Redis Cluster: any number of servers on one installation, none of them
//! special. Every operation is one bounded script on the keys of one partition; see `lua/`.
//!
//! Reading order: `lua/lib.lua` (what lies where), `partition` (one script at a time), `desk` and
//! `run` (which partitions a command concerns), `link` (the way to the right node and back).

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
pub use verify::{Kind, Outcome, Problem, VerifyOptions, VerifyReport, verify};
