//! The link against real servers: killed, frozen, restarted, and moved about.

mod alone;
mod check;
mod cluster;
mod ears;
mod failover;
mod rig;
