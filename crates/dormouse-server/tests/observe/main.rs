//! Metrics and event streams.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod client;
mod events;
mod metrics;
mod page;
mod rig;
mod streams;
