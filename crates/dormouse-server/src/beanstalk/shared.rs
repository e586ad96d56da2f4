//! The state that all connections of this protocol share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use super::clock;
use super::counts::CommandCounts;
use super::host::Host;
use super::tubes::Tubes;
use crate::access::{Access, Grant};

/// A switch that makes all puts be refused, as `SIGUSR1` does in the original. It cannot be undone.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<AtomicBool>);

impl Drain {
    /// Refuses puts from now on.
    pub fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether puts are refused.
    pub fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    /// This protocol has no tokens: access is limited by the address that it listens on.
    pub(super) grant: Grant,
    pub(super) tubes: Tubes,
    pub(super) commands: CommandCounts,
    pub(super) connections: ConnectionCounts,
    pub(super) drain: Drain,
    pub(super) job_bytes_max: usize,
    pub(super) host: Host,
    pub(super) started: Instant,
}

/// Counts of connections.
#[derive(Debug, Default)]
pub(super) struct ConnectionCounts {
    /// Open now.
    pub(super) connections: AtomicU64,
    /// Opened since the start.
    pub(super) connections_ever: AtomicU64,
    /// Open connections that have put a job.
    pub(super) producers: AtomicU64,
    /// Open connections that have reserved.
    pub(super) workers: AtomicU64,
    /// Open connections that wait for a job.
    pub(super) waiting: AtomicU64,
}

impl Shared {
    pub(crate) fn new(job_bytes_max: usize, drain: Drain, access: &Access) -> Shared {
        Shared {
            grant: access.grant_of_protocol("beanstalkd"),
            tubes: Tubes::new(),
            commands: CommandCounts::default(),
            connections: ConnectionCounts::default(),
            drain,
            job_bytes_max,
            host: Host::read(),
            started: clock::now(),
        }
    }
}

pub(super) fn up(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn down(count: &AtomicU64) {
    count.fetch_sub(1, Ordering::Relaxed);
}
