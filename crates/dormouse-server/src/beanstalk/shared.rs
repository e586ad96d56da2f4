//! What all connections of this protocol share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use super::clock;
use super::counts::CommandCounts;
use super::host::Host;
use super::tubes::Tubes;

/// Refuses puts from now on: what `SIGUSR1` is to the original. There is no way back.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<AtomicBool>);

impl Drain {
    /// Refuses puts.
    pub fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether puts are refused.
    pub fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters, tubes and limits of all connections.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) tubes: Tubes,
    pub(super) commands: CommandCounts,
    pub(super) connections: ConnectionCounts,
    pub(super) drain: Drain,
    pub(super) job_bytes_max: usize,
    pub(super) host: Host,
    pub(super) started: Instant,
}

/// Who is connected.
#[derive(Debug, Default)]
pub(super) struct ConnectionCounts {
    /// Now.
    pub(super) connections: AtomicU64,
    /// Ever.
    pub(super) connections_ever: AtomicU64,
    /// Have put.
    pub(super) producers: AtomicU64,
    /// Have reserved.
    pub(super) workers: AtomicU64,
    /// Wait for a job.
    pub(super) waiting: AtomicU64,
}

impl Shared {
    pub(crate) fn new(job_bytes_max: usize, drain: Drain) -> Shared {
        Shared {
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
