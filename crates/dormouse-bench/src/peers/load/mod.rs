//! The load generator: many connections, one thread, the same for all contenders.

mod connection_pool;
mod put;
mod take;
mod turn;

pub(super) use connection_pool::{ConnectionPool, Work};
pub(super) use put::PutWork;
pub(super) use take::{AckedJobs, TakeWork};
pub(super) use turn::Turn;

/// When a turn ends at the latest.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) jobs: u64,
    pub(super) time: std::time::Duration,
}
