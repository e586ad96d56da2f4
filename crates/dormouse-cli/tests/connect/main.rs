//! `Queue::connect` against the real server: killed, stopped, with tokens; and the program of the
//! documentation.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod chaos;
mod documented;
mod history;
#[allow(unreachable_pub, reason = "it is printed for other programs")]
mod orders;
#[allow(dead_code, reason = "a part of the rig of `serve` is enough here")]
#[path = "../serve/process.rs"]
mod process;
mod server;
mod silence;
#[allow(unreachable_pub, reason = "it is printed for other programs")]
mod traced;
