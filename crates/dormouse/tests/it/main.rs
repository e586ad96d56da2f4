//! The library as its users meet it.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod body;
mod cancelled;
mod change;
mod clock;
mod examples;
mod fake;
mod inspect;
mod lease;
mod lock;
mod open;
#[cfg(feature = "connect")]
mod outage;
mod pending;
mod put;
mod reserve;
mod session;
mod topic;
mod trace;
mod util;
mod worker;
mod worker_stop;
