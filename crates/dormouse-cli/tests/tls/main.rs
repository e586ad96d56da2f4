//! TLS end to end: the binary as a process, with certificates made here.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod authority;
mod client;
mod command_line;
mod library;
mod plain_text;
#[allow(dead_code, reason = "shared with the tests of `dormouse serve`")]
#[path = "../serve/process.rs"]
mod process;
mod protocols;
mod reload;
mod sentinel;
mod server;
mod slow_handshakes;
