//! The worker's waiting reserve.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use dormouse_core::error::{Code, Error};

use super::pool::Capacity;
use crate::leased_job::LeasedJob;
use crate::queue::Queue;

/// Between two tries when the backend is busy.
const BUSY: Duration = Duration::from_millis(50);

/// A reserve that waits for as many jobs as there are free places.
pub(crate) struct Fetch {
    topics: Vec<String>,
    reserve: Pin<Box<dyn Future<Output = Result<Vec<LeasedJob>, Error>> + Send>>,
}

impl Fetch {
    /// `None` if every place is taken.
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

    /// Whether another topic has a free place since, or one has none any more.
    pub(crate) fn differs_from(&self, capacity: &Capacity) -> bool {
        self.topics != capacity.topics
    }

    /// The jobs, when there are some; ends the fetch. Without a fetch it never ends.
    pub(crate) async fn jobs(fetch: &mut Option<Fetch>) -> Result<Vec<LeasedJob>, Error> {
        let Some(under_way) = fetch else { return std::future::pending().await };
        let jobs = (&mut under_way.reserve).await;
        *fetch = None;
        jobs
    }
}
