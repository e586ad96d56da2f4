//! Real Redis servers for tests: one alone, a cluster, a cluster whose network can be cut.
//!
//! The rig speaks to its servers over their unix sockets with a small client of its own. So it
//! shares nothing with the crate under test, and reaches a server also when its network is cut.
//! Whatever it starts ends with this process, even if this process is killed.

mod cluster;
mod config;
mod info;
mod isolated;
mod network;
mod ports;
pub mod reply;
mod server;
mod slot_move;
mod supervise;
mod view;
mod wait;

pub use cluster::{NODE_TIMEOUT, RedisCluster, SLOTS};
pub use config::{Append, RedisConfig};
pub use info::SlowCall;
pub use isolated::{IsolatedCluster, Spot};
pub use reply::Reply;
pub use server::RedisServer;
pub use slot_move::SlotMove;
