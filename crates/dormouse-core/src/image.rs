//! The machine's state besides the timeline, in pieces that a checkpoint can carry.

use bytes::Bytes;

use crate::job::Job;
use crate::topic::{Pause, Settings, TopicName, TopicNo};

/// Counts of a topic, changed only by applying facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Delayed and ready jobs.
    pub waiting: u64,
    /// Leased jobs.
    pub leased: u64,
    /// Dead jobs.
    pub dead: u64,
    /// Acked jobs that are kept; no limit counts them.
    pub done: u64,
    /// Bytes of waiting, leased and dead jobs.
    pub bytes: u64,
    /// Jobs ever put.
    pub puts: u64,
    /// Reserves ever.
    pub reserves: u64,
    /// Acks ever.
    pub acks: u64,
    /// Nacks ever.
    pub nacks: u64,
    /// Leases that ran out, ever.
    pub expiries: u64,
    /// Releases ever.
    pub releases: u64,
    /// Jobs that became dead, ever.
    pub kills: u64,
    /// Cancels ever.
    pub cancels: u64,
}

impl Counts {
    /// Adds another topic's counts to these.
    pub fn add(&mut self, other: &Counts) {
        self.waiting += other.waiting;
        self.leased += other.leased;
        self.dead += other.dead;
        self.done += other.done;
        self.bytes += other.bytes;
        self.puts += other.puts;
        self.reserves += other.reserves;
        self.acks += other.acks;
        self.nacks += other.nacks;
        self.expiries += other.expiries;
        self.releases += other.releases;
        self.kills += other.kills;
        self.cancels += other.cancels;
    }
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicImage {
    /// Its number.
    pub topic: TopicNo,
    /// Its name.
    pub name: TopicName,
    /// Its settings.
    pub settings: Settings,
    /// Whether reserve gives nothing from it.
    pub pause: Option<Pause>,
    /// When the last hold on one of its keys ends, steady.
    pub holds_until: u64,
    /// Its counts.
    pub counts: Counts,
    /// Schedules that put jobs into it.
    pub schedules: u64,
    /// Deadlines of its jobs may rest beside it.
    pub has_deadlines: bool,
    /// Jobs may be parked because their group has no room.
    pub has_parked: bool,
}

/// A leased job, whole: the run it came from may be gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseImage {
    /// Its topic.
    pub topic: TopicNo,
    /// The job.
    pub job: Job,
    /// The lease's length.
    pub ttr_ms: u64,
    /// It belongs to a session.
    pub session: bool,
}

/// A lock that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockImage {
    /// Its name.
    pub name: Bytes,
    /// The owner.
    pub owner: Bytes,
    /// The grant's fencing number.
    pub fence: u64,
    /// How often the owner must release it.
    pub depth: u32,
    /// How long a grant lasts.
    pub ttl_ms: u64,
}

/// The machine's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineImage {
    /// The next job's id.
    pub next_id: u64,
    /// The next topic's number.
    pub next_topic: u32,
    /// The boot epoch, high bits of every fence.
    pub epoch: u32,
    /// Running totals of the topics that have vanished; they hold no job.
    pub gone: Counts,
}
