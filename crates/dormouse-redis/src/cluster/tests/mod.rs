//! The link against real servers: killed, frozen, restarted, and moved about.

mod check;
mod cluster;
mod failover;
mod harness;
mod single_server;
mod subscriptions;
