//! The worker's waiting reserve.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use dormouse_core::error::{Code, Error};

use super::pool::Capacity;
use crate::leased_job::LeasedJob;
use crate::queue::Queue;

/// The pause between two attempts while the backend is busy.
const BUSY: Duration = Duration::from_millis(50);

/// A waiting reserve for as many jobs as the pool has capacity for.
pub(crate) struct Fetch {
    topics: Vec<String>,
    reserve: Pin<Box<dyn Future<Output = Result<Vec<LeasedJob>, Error>> + Send>>,
}

impl Fetch {
    /// `None` if the pool is full.
    pub(crate) fn start(queue: &Queue, capacity: Capacity) -> Option<Fetch> {
        if capacity.topics.is_empty() {
            return None;
        }
        let reserve = queue
            .reserve_any(capacity.topics.iter().map(String::as_str))
            .max(capacity.max)
            .wait_for(Duration::MAX);
        let patient = async move {
            loop {
                match reserve.clone().await {
                    Err(error) if error.code == Code::Busy => tokio::time::sleep(BUSY).await,
                    result => return result,
                }
            }
        };
        Some(Fetch { topics: capacity.topics, reserve: Box::pin(patient) })
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
