//! What the server tells about itself: figures at /metrics, and events as they happen.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod client;
mod events;
mod metrics;
mod page;
mod rig;
mod streams;
