//! The worker's waiting reserve.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use dormouse_core::error::{Code, Error};

use super::pool::Capacity;
use crate::leased_job::LeasedJob;
use crate::queue::Queue;

/// The pause between two attempts while the backend is busy.
const BUSY: Duration = Duration::from_millis(50);
/// The pause between two attempts while the server is away; each attempt itself takes long.
const AWAY: Duration = Duration::from_secs(1);

/// Hears of errors that a worker survives.
type OnError = Arc<dyn Fn(&Error) + Send + Sync>;

/// What a worker does while the server of its queue is away.
#[derive(Clone)]
pub(crate) struct Outage {
    pub(crate) longest: Duration,
    pub(crate) on_error: Option<OnError>,
}

impl Outage {
    /// Whether the error may pass: then it is told, and there is time for another attempt.
    fn may_pass(&self, queue: &Queue, error: &Error, since: tokio::time::Instant) -> bool {
        let may_pass = queue.is_remote()
            && matches!(error.code, Code::Unavailable | Code::Unconfirmed)
            && since.elapsed() < self.longest;
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
        let reserve = queue
            .reserve_any(capacity.topics.iter().map(String::as_str))
            .max(capacity.max)
            .wait_for(Duration::MAX);
        let (queue, outage) = (queue.clone(), outage.clone());
        let persistent = async move {
            let since = tokio::time::Instant::now();
            loop {
                match reserve.clone().await {
                    Err(error) if error.code == Code::Busy => tokio::time::sleep(BUSY).await,
                    Err(error) if outage.may_pass(&queue, &error, since) => {
                        tokio::time::sleep(AWAY).await;
                    }
                    result => return result,
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
