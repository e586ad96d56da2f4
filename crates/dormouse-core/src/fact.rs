//! Facts: the decisions of operations, complete enough to be applied again without deciding
//! anything.
//!
//! The disk backend writes them to its journal; replay feeds them to the same `apply` that made
//! them effective in the first place. A fact never needs a look-up: it names the place a job left,
//! the place it entered and every field that changed.

use std::sync::Arc;

use bytes::Bytes;

use crate::job::{Job, JobId, Progress};
use crate::place::Place;
use crate::topic::{Pause, Push, Settings, TopicName, TopicNo};

/// Where a job went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To a consumer. Times are not kept: after a restart every lease has its full ttr again.
    Leased {
        /// The lease's length.
        ttr_ms: u64,
        /// It belongs to a session, so it does not outlive the process.
        session: bool,
    },
    /// To this place, waiting or dead.
    Rest(Place),
    /// Gone, but its key stays taken until this place's due time.
    Hold(Place),
    /// Gone.
    Gone,
}

/// Why a job moved. Running totals are counted by it, in a replay as they were live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A consumer took it.
    Reserve,
    /// A lease that had run out was prolonged before anybody else took the job.
    Extend,
    /// The work is done.
    Ack,
    /// The attempt failed.
    Nack,
    /// Given back unspent.
    Release,
    /// The lease ran out.
    Expiry,
    /// Made dead on request.
    Kill,
    /// Removed on request.
    Cancel,
    /// Its due time was moved: reschedule, run now, kick.
    Reschedule,
    /// Back from dead.
    Revive,
    /// Removed because too many were dead, or for too long.
    Trim,
    /// Dead or done, it stays where it is; a new job took its key.
    KeyPassed,
    /// Nobody took it before its deadline.
    TooLate,
    /// Its group has no room, or has room again. Nothing else changed.
    Park,
}

impl Cause {
    /// Whether it can be the end of a job that does not rest as dead, but goes on in another topic.
    pub fn is_death(self) -> bool {
        matches!(self, Cause::Nack | Cause::Expiry | Cause::Kill | Cause::TooLate)
    }

    const ALL: [Cause; 14] = [
        Cause::Reserve,
        Cause::Extend,
        Cause::Ack,
        Cause::Nack,
        Cause::Release,
        Cause::Expiry,
        Cause::Kill,
        Cause::Cancel,
        Cause::Reschedule,
        Cause::Revive,
        Cause::Trim,
        Cause::KeyPassed,
        Cause::TooLate,
        Cause::Park,
    ];

    /// The number that stands for this cause in files.
    pub fn to_u8(self) -> u8 {
        self as u8
    }

    /// The cause a file's number stands for, unless it is none.
    pub fn from_u8(number: u8) -> Option<Cause> {
        Cause::ALL.get(usize::from(number)).copied()
    }
}

/// One durable change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A job was put, or put again over one that rested (a replace).
    Put {
        /// The job, whole.
        job: Job,
        /// Where it rests.
        at: Place,
        /// The place the replaced job, or the hold on its key, left.
        left: Option<Place>,
        /// Bytes that the replaced job counted against byte limits; 0 without one.
        left_bytes: u32,
        /// The leased job that lost its key to this one.
        key_loser: Option<JobId>,
    },
    /// A job moved.
    Move {
        /// The job.
        id: JobId,
        /// Its topic.
        topic: TopicNo,
        /// The place it left; `None` = it was leased.
        left: Option<Place>,
        /// Where it went.
        to: Destination,
        /// Its progress afterwards, whole.
        progress: Progress,
        /// Its key, only where `to` is a hold: a hold is known by its key alone. Of a schedule that
        /// goes, its name, for watchers.
        key: Option<Bytes>,
        /// The operation or event that moved it.
        cause: Cause,
    },
    /// All resting jobs and holds of a topic went.
    Purged {
        /// Which topic.
        topic: TopicNo,
    },
    /// A topic was created.
    TopicBorn {
        /// Its number.
        topic: TopicNo,
        /// Its name.
        name: TopicName,
    },
    /// A topic vanished: no job, no setting, no consumer. Holds that are over go with it.
    TopicGone {
        /// Its number.
        topic: TopicNo,
    },
    /// A topic's settings changed.
    TopicSet {
        /// Its number.
        topic: TopicNo,
        /// All settings.
        settings: Settings,
    },
    /// How a topic's jobs are pushed changed.
    PushSet {
        /// Its number.
        topic: TopicNo,
        /// `None` = they are not any more.
        push: Option<Arc<Push>>,
    },
    /// A topic was paused or resumed.
    TopicPaused {
        /// Its number.
        topic: TopicNo,
        /// `None` = resumed.
        pause: Option<Pause>,
    },
    /// A lock was granted, re-entered, renewed or partly released.
    LockHeld {
        /// Its name.
        name: Bytes,
        /// The owner.
        owner: Bytes,
        /// The grant's fencing number.
        fence: u64,
        /// How often the owner must release it.
        depth: u32,
        /// How long it lasts from now.
        ttl_ms: u64,
    },
    /// A lock became free.
    LockFreed {
        /// Its name.
        name: Bytes,
    },
}
