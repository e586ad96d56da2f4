//! The HTTP API through a socket: a server in this process, with a virtual clock.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod access;
mod client;
mod console;
mod explain;
mod ids;
mod job;
mod lease;
mod leave;
mod life;
mod limits;
mod lock;
mod looks;
mod openapi;
mod put;
mod rig;
mod schedule;
mod schema;
mod server;
mod topic;
mod ui_files;
