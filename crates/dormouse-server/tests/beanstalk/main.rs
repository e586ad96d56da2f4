//! The beanstalkd protocol from outside: a server in this process, real sockets, bytes.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod client;
mod end;
mod frame;
mod lease;
mod look;
mod put;
mod reserve;
mod rig;
mod stats;
mod tube;
mod unix;
