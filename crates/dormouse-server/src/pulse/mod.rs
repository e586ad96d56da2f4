//! The pulse: the figures of the server, made once a second for all who read them, and a sample
//! every ten seconds for the history if nobody does.
//!
//! One task asks the backend. It reads counters and never jobs, ten topics at a time, because the
//! engine does nothing else meanwhile. A reader has the latest beat and no queue: one that is slow
//! misses beats and holds nobody up.

mod beat;
mod candidates;
mod history;
mod reader;
mod sampler;
mod verdict;
mod wanted;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_core::error::Error;
use dormouse_core::topic::TopicName;
use tokio::sync::watch;

use crate::client::BackendClient;
use crate::limits::PULSE_STREAMS_MAX;
use crate::metrics::{Metrics, Stopwatch};
use crate::shares::SharedLimit;
use crate::units::wall_ms;
use crate::visitor::Claimant;

pub(crate) use beat::{Beat, Rates, TopicBeat};
use history::History;
pub(crate) use history::{HistoryPart, Step};
pub(crate) use reader::PulseReader;
use sampler::Sampler;
pub(crate) use verdict::Verdict;
use wanted::Wanted;

/// Topics fetched at once. The engine does nothing else meanwhile, and needs about 0.1 ms for a
/// topic that is spread over ten runs.
const PORTION: usize = 10;

/// The pulse of a server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Pulse {
    hub: Arc<Hub>,
}

struct Hub {
    client: BackendClient,
    metrics: Arc<Metrics>,
    /// Whose streams are open.
    shares: SharedLimit<Claimant>,
    /// Readers that have ever come; a change wakes the task.
    arrivals: watch::Sender<u64>,
    latest: watch::Sender<Option<Arc<Beat>>>,
    wanted: Mutex<Wanted>,
    history: Mutex<History>,
    /// Since the start: the time of the history, which no step of the wall clock disturbs.
    watch: Stopwatch,
    started_at: u64,
}

impl Pulse {
    /// Starts the task that samples; it ends when the server stops. Must be called within a tokio
    /// runtime.
    pub(crate) fn start(client: BackendClient, metrics: Arc<Metrics>) -> Pulse {
        let hub = Arc::new(Hub {
            client,
            metrics,
            shares: SharedLimit::new(PULSE_STREAMS_MAX, "pulse streams"),
            arrivals: watch::Sender::new(0),
            latest: watch::Sender::new(None),
            wanted: Mutex::default(),
            history: Mutex::default(),
            watch: Stopwatch::start(),
            started_at: wall_ms(),
        });
        tokio::spawn(Sampler::new(Arc::clone(&hub)).run());
        Pulse { hub }
    }

    /// A reader with these topics; `busy` beyond the limit or the share.
    pub(crate) fn read(&self, who: Claimant, topics: Vec<TopicName>) -> Result<PulseReader, Error> {
        if self.hub.client.is_stopping() {
            return Err(Error::unavailable("the server is stopping; try again"));
        }
        let portion = self.hub.shares.take(who, 1)?;
        Ok(PulseReader::new(Arc::clone(&self.hub), topics, portion))
    }

    /// What is known of all topics, or of one, in steps of this length.
    pub(crate) fn history(&self, topic: Option<&TopicName>, step: Step) -> HistoryPart {
        let now_s = self.hub.now_s();
        let mut history = self.hub.history();
        let part = match topic {
            Some(topic) => history.of_topic(topic, now_s),
            None => history.of_all(step, now_s),
        };
        drop(history);
        if topic.is_none() && step == Step::Second {
            // The task takes a sample each second from now on.
            self.hub.arrivals.send_modify(|_| {});
        }
        part
    }

    /// When the steps of the history began, ms since 1970.
    pub(crate) fn started_at(&self) -> u64 {
        self.hub.started_at
    }
}

impl Hub {
    fn now_s(&self) -> u64 {
        self.watch.elapsed().as_secs()
    }

    fn history(&self) -> MutexGuard<'_, History> {
        // Nothing panics while it is held.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        // Nothing panics while it is held.
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
