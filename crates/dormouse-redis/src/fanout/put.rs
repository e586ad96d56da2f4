//! put: a job with a key goes to the partition of its key, others round robin.

use std::rc::Rc;

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::op::{Put, check};

use super::{Scatter, reply, unanswered};
use crate::clock::ANY_TIME;
use crate::codec::put;
use crate::dispatch::Dispatcher;
use crate::partition::{BATCH_BYTES_MAX, BATCH_JOBS_MAX, PartitionRequest, SubmissionNo};

/// Whether a put is within all limits.
pub(crate) fn is_good(put: &Put) -> bool {
    put.check(ANY_TIME).is_ok()
}

pub(super) async fn put(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    puts: Vec<Put>,
) -> Answer {
    check::batch(puts.len())?;
    let mut replies = unanswered(puts.len());
    let mut scatter = Scatter::new();
    for (index, put) in puts.into_iter().enumerate() {
        let refused = put.check(ANY_TIME).err();
        let topic = dispatcher.known(&put.topic);
        let partition = topic.as_ref().and_then(|topic| match &put.key {
            Some(key) => topic.partition_of_key(key),
            None => topic.next_partition(),
        });
        match (refused, partition) {
            (None, Some(partition)) => {
                // Large bodies fill a script batch with fewer jobs.
                let most = (BATCH_BYTES_MAX / put::weight(&put)).clamp(1, BATCH_JOBS_MAX / 2);
                scatter.add(partition, index, put, most);
            }
            (Some(error), _) => refuse(&mut replies, index, error),
            (None, None) => {
                refuse(&mut replies, index, Error::unavailable("the topic has no partition"));
            }
        }
    }
    scatter
        .gather(submission, &mut replies, |puts, reply_to| PartitionRequest::Put { puts, reply_to })
        .await;
    reply(replies, Reply::Put)
}

pub(super) fn refuse<T>(replies: &mut [Option<Result<T, Error>>], index: usize, error: Error) {
    if let Some(entry) = replies.get_mut(index) {
        *entry = Some(Err(error));
    }
}
