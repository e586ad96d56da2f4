//! The client against real servers: killed, frozen, restarted, with moving slots.

mod check;
mod cluster;
mod failover;
mod harness;
mod sentinel;
mod single_server;
mod subscriptions;
