//! Counts and durations of pushes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dormouse_core::topic::TopicName;

use super::OTHER;
use super::histogram::{Histogram, HistogramCounts};
use crate::limits::PUSH_METRICS_TOPICS_MAX;

/// Upper ends in microseconds.
const BOUNDS_US: &[u64] = &[
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 30_000_000,
];

/// How a push ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushOutcome {
    /// Delivered.
    Success,
    /// A redirect, which is not followed.
    Redirect,
    /// A status from 400 on.
    ClientError,
    /// 429.
    Throttled,
    /// Any other status.
    ServerError,
    /// No whole head of a reply in time.
    Timeout,
    /// No connection, or it was lost.
    Connect,
    /// The name has no address.
    Dns,
    /// The certificate or the handshake is wrong.
    Tls,
    /// The URL or its address may not be called.
    Blocked,
}

impl PushOutcome {
    const ALL: [PushOutcome; 10] = [
        PushOutcome::Success,
        PushOutcome::Redirect,
        PushOutcome::ClientError,
        PushOutcome::Throttled,
        PushOutcome::ServerError,
        PushOutcome::Timeout,
        PushOutcome::Connect,
        PushOutcome::Dns,
        PushOutcome::Tls,
        PushOutcome::Blocked,
    ];

    /// The value of the label.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            PushOutcome::Success => "2xx",
            PushOutcome::Redirect => "3xx",
            PushOutcome::ClientError => "4xx",
            PushOutcome::Throttled => "429",
            PushOutcome::ServerError => "5xx",
            PushOutcome::Timeout => "timeout",
            PushOutcome::Connect => "connect",
            PushOutcome::Dns => "dns",
            PushOutcome::Tls => "tls",
            PushOutcome::Blocked => "blocked",
        }
    }
}

/// The meters of all pushes.
pub(crate) struct PushMeters {
    topics: Mutex<BTreeMap<String, Arc<PushMeter>>>,
    seconds: Histogram,
    in_flight: AtomicU64,
}

/// The meters of a topic.
#[derive(Default)]
pub(crate) struct PushMeter {
    outcomes: [AtomicU64; PushOutcome::ALL.len()],
    breaker: AtomicU64,
    is_disabled: AtomicBool,
}

/// Counts a push as under way until it is dropped.
pub(crate) struct PushInFlight(Arc<PushMeters>);

/// A copy of the meters.
#[derive(Debug)]
pub(super) struct PushCounts {
    pub(super) topics: Vec<PushTopicCounts>,
    pub(super) seconds: HistogramCounts,
    pub(super) in_flight: u64,
}

/// A copy of the meters of a topic.
#[derive(Debug)]
pub(super) struct PushTopicCounts {
    pub(super) name: String,
    pub(super) outcomes: Vec<(&'static str, u64)>,
    pub(super) breaker: u64,
    pub(super) is_disabled: bool,
}

impl Default for PushMeters {
    fn default() -> PushMeters {
        PushMeters {
            topics: Mutex::default(),
            seconds: Histogram::new(BOUNDS_US, 1_000_000),
            in_flight: AtomicU64::new(0),
        }
    }
}

impl PushMeters {
    /// The meters of a topic; beyond a number of topics, those of all others.
    pub(crate) fn of_topic(&self, topic: &TopicName) -> Arc<PushMeter> {
        let mut topics = self.lock();
        let has_room = topics.len() < PUSH_METRICS_TOPICS_MAX;
        let is_known = topics.contains_key(topic.as_str());
        let name = if has_room || is_known { topic.as_str() } else { OTHER };
        Arc::clone(topics.entry(name.to_owned()).or_default())
    }

    /// The topic is not pushed any more, unless somebody else has its meters, too.
    pub(crate) fn forget(&self, topic: &TopicName, meter: &Arc<PushMeter>) {
        let mut topics = self.lock();
        let is_it = topics.get(topic.as_str()).is_some_and(|known| Arc::ptr_eq(known, meter));
        // The table's and the caller's.
        if is_it && Arc::strong_count(meter) <= 2 {
            topics.remove(topic.as_str());
        }
    }

    /// Counts a push that begins; drop the result when it ends.
    pub(crate) fn begin(self: &Arc<PushMeters>) -> PushInFlight {
        self.in_flight.fetch_add(1, Relaxed);
        PushInFlight(Arc::clone(self))
    }

    /// Counts a push that has ended.
    pub(crate) fn note(&self, meter: &PushMeter, outcome: PushOutcome, took: Duration) {
        meter.outcomes[outcome as usize].fetch_add(1, Relaxed);
        self.seconds.note(std::iter::once(u64::try_from(took.as_micros()).unwrap_or(u64::MAX)));
    }

    /// `None` if nothing is pushed.
    pub(super) fn counts(&self) -> Option<PushCounts> {
        let topics = self.lock();
        if topics.is_empty() {
            return None;
        }
        let counts = |(name, meter): (&String, &Arc<PushMeter>)| {
            let outcomes = PushOutcome::ALL.iter().zip(&meter.outcomes);
            PushTopicCounts {
                name: name.clone(),
                outcomes: outcomes.map(|(one, n)| (one.as_str(), n.load(Relaxed))).collect(),
                breaker: meter.breaker.load(Relaxed),
                is_disabled: meter.is_disabled.load(Relaxed),
            }
        };
        let topics = topics.iter().map(counts).collect();
        let in_flight = self.in_flight.load(Relaxed);
        Some(PushCounts { topics, seconds: self.seconds.counts(), in_flight })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<PushMeter>>> {
        // Nothing panics while it is held.
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PushMeter {
    /// 0 = closed, 1 = half open, 2 = open.
    pub(crate) fn set_breaker(&self, level: u64) {
        self.breaker.store(level, Relaxed);
    }

    pub(crate) fn set_disabled(&self, is_disabled: bool) {
        self.is_disabled.store(is_disabled, Relaxed);
    }
}

impl Drop for PushInFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}
