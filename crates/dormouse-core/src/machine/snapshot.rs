//! A snapshot of the machine's tables, which another thread makes a checkpoint of.

use std::sync::Arc;

use bytes::Bytes;

use super::topics::Topic;
use super::{HeldLock, Lease, Machine};
use crate::image::{LeaseImage, LockImage, TopicImage};
use crate::job::JobId;
use crate::snapshot_map::SnapshotMap;
use crate::timeline::Timeline;
use crate::topic::TopicNo;

/// The machine's state besides the timeline, at one instant. Dropping it may take long.
#[derive(Debug)]
pub struct MachineSnapshot {
    topics: SnapshotMap<TopicNo, Topic>,
    leases: SnapshotMap<JobId, Arc<Lease>>,
    locks: SnapshotMap<Bytes, HeldLock>,
}

impl MachineSnapshot {
    /// How many topics, leased jobs and locks there are.
    pub fn count(&self) -> usize {
        self.topics.len() + self.leases.len() + self.locks.len()
    }

    /// All topics, in no order.
    pub fn topics(&self) -> impl Iterator<Item = TopicImage> {
        self.topics.iter().map(|(topic, value)| value.image(*topic))
    }

    /// All leased jobs, in no order.
    pub fn leases(&self) -> impl Iterator<Item = LeaseImage> {
        self.leases.iter().map(|(id, lease)| lease.image(*id))
    }

    /// All locks held, in no order.
    pub fn locks(&self) -> impl Iterator<Item = LockImage> {
        self.locks.iter().map(|(name, lock)| lock.image(name))
    }
}

impl<T: Timeline> Machine<T> {
    /// The state as it is now: tables are shared, not copied.
    pub fn snapshot(&mut self) -> MachineSnapshot {
        MachineSnapshot {
            topics: self.topics.snapshot(),
            leases: self.leases.snapshot(),
            locks: self.locks.snapshot(),
        }
    }
}
