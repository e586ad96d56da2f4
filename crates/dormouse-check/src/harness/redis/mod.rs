//! Real Redis servers: one alone, one with replicas and sentinels, a cluster, a cluster whose
//! network can be cut; and what is run against them.
//!
//! The harness speaks to its servers over their unix sockets with a small client of its own. So it
//! shares nothing with the crate under test, and reaches a server also when its network is cut.
//! Whatever it starts ends with this process, even if this process is killed.

mod cluster;
mod config;
mod info;
mod isolated;
pub mod locks;
pub mod loss_audit;
pub mod model;
pub(crate) mod ports;
pub mod probe;
mod sentinel;
mod server;
mod slot_move;
pub(crate) mod supervise;
mod view;
pub mod wait;
pub mod workload;

pub use cluster::{NODE_TIMEOUT, RedisCluster, SLOTS};
pub use config::{Append, RedisConfig};
pub use info::SlowCall;
pub use isolated::{IsolatedCluster, Spot};
pub use sentinel::{SERVICE, SentinelRig};
pub use server::RedisServer;
pub use slot_move::SlotMove;

pub use crate::client::resp::raw::Reply;
