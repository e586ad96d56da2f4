//! The worker's waiting reserve.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use dormouse_core::error::{Code, Error};

use super::crew::Offer;
use crate::queue::Queue;
use crate::reserved::Reserved;

/// Between two tries when the backend is busy.
const BUSY: Duration = Duration::from_millis(50);

/// A reserve that waits for as many jobs as there are free places.
pub(crate) struct Hunt {
    topics: Vec<String>,
    reserve: Pin<Box<dyn Future<Output = Result<Vec<Reserved>, Error>> + Send>>,
}

impl Hunt {
    /// `None` if every place is taken.
    pub(crate) fn begin(queue: &Queue, offer: Offer) -> Option<Hunt> {
        if offer.topics.is_empty() {
            return None;
        }
        let reserve = queue
            .reserve_any(offer.topics.iter().map(String::as_str))
            .max(offer.max)
            .wait_for(Duration::MAX);
        let patient = async move {
            loop {
                match reserve.clone().await {
                    Err(error) if error.code == Code::Busy => tokio::time::sleep(BUSY).await,
                    result => return result,
                }
            }
        };
        Some(Hunt { topics: offer.topics, reserve: Box::pin(patient) })
    }

    /// Whether another topic has a free place since, or one has none any more.
    pub(crate) fn misses(&self, offer: &Offer) -> bool {
        self.topics != offer.topics
    }

    /// The jobs, when there are some; ends the hunt. Without a hunt it never ends.
    pub(crate) async fn catch(hunt: &mut Option<Hunt>) -> Result<Vec<Reserved>, Error> {
        let Some(under_way) = hunt else { return std::future::pending().await };
        let jobs = (&mut under_way.reserve).await;
        *hunt = None;
        jobs
    }
}
