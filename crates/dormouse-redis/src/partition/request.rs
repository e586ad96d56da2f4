//! What is asked of a partition, and where the answer goes.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::Token;
use dormouse_core::op::{Ended, Extended, Put, PutReply};
use dormouse_core::topic::Settings;

use super::reply_to::To;
use crate::codec::extend::Longer;
use crate::codec::nack::Ending;
use crate::codec::put;
use crate::codec::reserve::{Look, Seen};
use crate::wire::{Op, Records};

/// Per item of an ask.
pub(crate) type Each<T> = Vec<Result<T, Error>>;

/// The answer to an operation that only who asked it can read.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) answer: Bytes,
    pub(crate) records: Records,
    /// What Redis' clock showed.
    pub(crate) now_ms: u64,
}

/// One question to a partition; its items are checked.
#[derive(Debug)]
pub(crate) enum Ask {
    Put {
        puts: Vec<Put>,
        to: To<Each<PutReply>>,
    },
    Ack {
        tokens: Vec<Token>,
        to: To<Each<Ended>>,
    },
    /// nack (`spends`) or release.
    End {
        spends: bool,
        endings: Vec<Ending>,
        to: To<Each<Ended>>,
    },
    Extend {
        leases: Vec<Longer>,
        to: To<Each<Extended>>,
    },
    Take {
        look: Look,
        to: To<Seen>,
    },
    Other {
        op: Op,
        effect: Effect,
        priorities: Vec<u32>,
        to: To<Raw>,
    },
    /// The topic's settings are these from now on.
    Configure {
        settings: Settings,
        to: To<()>,
    },
}

/// What an operation may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing that counts.
    Look,
    /// Jobs or topics: it must be as durable as promised.
    Change,
    /// A lease: its loss costs another delivery.
    Lease,
}

/// What a flight carries at most.
pub(crate) const FLIGHT_JOBS_MAX: usize = 128;
/// See above.
pub(crate) const FLIGHT_BYTES_MAX: usize = 4 << 20;

/// What an ask weighs in its flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weight {
    pub(crate) jobs: usize,
    pub(crate) bytes: usize,
}

impl Weight {
    pub(crate) fn add(&mut self, other: Weight) {
        self.jobs += other.jobs;
        self.bytes += other.bytes;
    }

    /// Whether one more fits; the first always does.
    pub(crate) fn has_room(&self, other: Weight) -> bool {
        self.jobs == 0
            || self.jobs + other.jobs <= FLIGHT_JOBS_MAX
                && self.bytes + other.bytes <= FLIGHT_BYTES_MAX
    }
}

impl Ask {
    pub(crate) fn weight(&self) -> Weight {
        match self {
            Ask::Put { puts, .. } => {
                Weight { jobs: puts.len(), bytes: puts.iter().map(put::weight).sum() }
            }
            Ask::Ack { tokens, .. } => Weight { jobs: tokens.len().max(1), bytes: 0 },
            Ask::End { endings, .. } => Weight { jobs: 2 * endings.len().max(1), bytes: 0 },
            Ask::Extend { leases, .. } => Weight { jobs: 2 * leases.len().max(1), bytes: 0 },
            Ask::Take { look, .. } => Weight { jobs: look.max, bytes: 0 },
            Ask::Other { .. } | Ask::Configure { .. } => Weight { jobs: 64, bytes: 0 },
        }
    }

    /// How many jobs it is about, or callers.
    pub(crate) fn items(&self) -> usize {
        match self {
            Ask::Put { puts, .. } => puts.len(),
            Ask::Ack { tokens, .. } => tokens.len(),
            Ask::End { endings, .. } => endings.len(),
            Ask::Extend { leases, .. } => leases.len(),
            Ask::Take { .. } | Ask::Other { .. } | Ask::Configure { .. } => 1,
        }
    }

    /// In a flight, what takes away and adds comes before what looks. Puts are first: only the
    /// first write of a script is refused when Redis is out of memory.
    pub(crate) fn phase(&self) -> u8 {
        match self {
            Ask::Put { .. } => 0,
            Ask::Ack { .. } => 1,
            Ask::End { spends: true, .. } => 2,
            Ask::End { spends: false, .. } => 3,
            Ask::Extend { .. } => 4,
            Ask::Configure { .. } => 5,
            Ask::Other { .. } => 6,
            Ask::Take { .. } => 7,
        }
    }

    /// Whether it can make a job visible, so that who waits must look.
    pub(crate) fn may_make_visible(&self) -> bool {
        match self {
            Ask::Put { .. } | Ask::End { .. } => true,
            Ask::Other { effect, .. } => *effect == Effect::Change,
            Ask::Ack { .. } | Ask::Extend { .. } | Ask::Take { .. } | Ask::Configure { .. } => {
                false
            }
        }
    }

    /// Whether it must be as durable as promised before it is answered.
    pub(crate) fn is_change(&self) -> bool {
        match self {
            Ask::Put { .. } | Ask::Ack { .. } | Ask::End { .. } | Ask::Configure { .. } => true,
            Ask::Other { effect, .. } => *effect == Effect::Change,
            Ask::Extend { .. } | Ask::Take { .. } => false,
        }
    }

    /// Priorities that the partition must know for it.
    pub(crate) fn priorities(&self) -> impl Iterator<Item = u32> {
        let (puts, endings, others): (&[_], &[Ending], &[_]) = match self {
            Ask::Put { puts, .. } => (puts, &[], &[]),
            Ask::End { endings, .. } => (&[], endings, &[]),
            Ask::Other { priorities, .. } => (&[], &[], priorities),
            _ => (&[], &[], &[]),
        };
        let given = endings.iter().filter_map(|ending| ending.priority);
        puts.iter().map(put::priority).chain(given).chain(others.iter().copied())
    }

    /// It is answered with this error; what comes of it nobody learns.
    pub(crate) fn fail(&mut self, error: Error) {
        match self {
            Ask::Put { to, .. } => to.fail(error),
            Ask::Ack { to, .. } | Ask::End { to, .. } => to.fail(error),
            Ask::Extend { to, .. } => to.fail(error),
            Ask::Take { to, .. } => to.fail(error),
            Ask::Other { to, .. } => to.fail(error),
            Ask::Configure { to, .. } => to.fail(error),
        }
    }
}
