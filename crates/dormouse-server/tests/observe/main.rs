//! Metrics and event streams.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod client;
mod dashboard;
mod events;
mod metrics;
mod page;
mod pulse;
mod rig;
mod streams;
