//! RESP as its clients see it: whole servers, real sockets.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod access;
mod client;
mod connection;
mod flow;
mod guest;
mod hostile;
mod job;
mod lease;
mod life;
mod limits;
mod lock;
mod metrics;
mod put;
mod rig;
mod topic;
mod value;
