//! The command line, against a server of canned answers and against the real one.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod bench;
mod exit;
mod fake;
mod job;
mod lease;
mod lock;
mod misc;
mod put;
mod real;
mod topic;
mod util;
mod work;
