//! The link against real servers: killed, frozen, restarted, and moved about.

mod alone;
mod rig;
