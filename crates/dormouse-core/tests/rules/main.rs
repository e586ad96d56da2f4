//! The rules, verb by verb, over the timeline in memory.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod chain;
mod dead;
mod dead_letters;
mod deadlines;
mod done;
mod flow;
mod fuzz;
mod groups;
mod holders;
mod lease;
mod limits;
mod locks;
mod look;
mod operations;
mod parking;
mod put;
mod random;
mod replay;
mod reserve;
mod schedules;
mod sessions;
mod support;
mod topics;
mod waiters;
