//! The worker's waiting reserve.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dormouse_core::error::{Code, Error};
use dormouse_core::limits::WAIT_MS_MAX;
use tokio::time::Instant;

use super::pool::Capacity;
use crate::leased_job::LeasedJob;
use crate::queue::Queue;

/// The pause between two attempts while the backend is busy.
const BUSY: Duration = Duration::from_millis(50);
/// The pause between two attempts while the server is away; each attempt itself takes long.
const AWAY: Duration = Duration::from_secs(1);

/// The longest wait of one reserve. It ends, so that an answer without jobs tells that the server
/// is there.
const WAIT: Duration = Duration::from_millis(WAIT_MS_MAX);
/// The same during an outage: its end, or that it lasts too long, is noticed soon.
const WAIT_AWAY: Duration = Duration::from_secs(1);

/// Hears of errors that a worker survives.
type OnError = Arc<dyn Fn(&Error) + Send + Sync>;

/// What a worker does while the server of its queue is away. Clones share the outage.
#[derive(Clone)]
pub(crate) struct Outage {
    pub(crate) longest: Duration,
    pub(crate) on_error: Option<OnError>,
    /// The first error since the last answer. A fetch that replaces another goes on with it.
    failing_since: Arc<Mutex<Option<Instant>>>,
}

impl Outage {
    pub(crate) fn new(longest: Duration) -> Outage {
        Outage { longest, on_error: None, failing_since: Arc::default() }
    }

    fn failing_since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.failing_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server has answered.
    fn end(&self) {
        *self.failing_since() = None;
    }

    /// How long the next reserve may wait.
    fn wait(&self) -> Duration {
        if self.failing_since().is_some() { WAIT_AWAY } else { WAIT }
    }

    /// Whether the error may pass: then it is told, and there is time for another attempt.
    fn may_pass(&self, queue: &Queue, error: &Error) -> bool {
        if !queue.is_remote() || !matches!(error.code, Code::Unavailable | Code::Unconfirmed) {
            return false;
        }
        let since = *self.failing_since().get_or_insert_with(Instant::now);
        let may_pass = since.elapsed() < self.longest;
        if may_pass && let Some(on_error) = &self.on_error {
            on_error(error);
        }
        may_pass
    }
}

/// A waiting reserve for as many jobs as the pool has capacity for.
pub(crate) struct Fetch {
    topics: Vec<String>,
    reserve: Pin<Box<dyn Future<Output = Result<Vec<LeasedJob>, Error>> + Send>>,
}

impl Fetch {
    /// `None` if the pool is full.
    pub(crate) fn start(queue: &Queue, capacity: Capacity, outage: &Outage) -> Option<Fetch> {
        if capacity.topics.is_empty() {
            return None;
        }
        let reserve =
            queue.reserve_any(capacity.topics.iter().map(String::as_str)).max(capacity.max);
        let (queue, outage) = (queue.clone(), outage.clone());
        let persistent = async move {
            loop {
                match reserve.clone().wait_for(outage.wait()).await {
                    Ok(jobs) => {
                        outage.end();
                        if !jobs.is_empty() {
                            return Ok(jobs);
                        }
                    }
                    Err(error) if error.code == Code::Busy => tokio::time::sleep(BUSY).await,
                    Err(error) if outage.may_pass(&queue, &error) => {
                        tokio::time::sleep(AWAY).await;
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        Some(Fetch { topics: capacity.topics, reserve: Box::pin(persistent) })
    }

    /// Whether the set of topics with free capacity has changed since it was sent.
    pub(crate) fn differs_from(&self, capacity: &Capacity) -> bool {
        self.topics != capacity.topics
    }

    /// Waits for the jobs and ends the fetch. Never returns if there is none.
    pub(crate) async fn jobs(fetch: &mut Option<Fetch>) -> Result<Vec<LeasedJob>, Error> {
        let Some(under_way) = fetch else { return std::future::pending().await };
        let jobs = (&mut under_way.reserve).await;
        *fetch = None;
        jobs
    }
}
