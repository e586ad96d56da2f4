//! put: a job with a key goes to the partition of its key, others round robin.

use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::op::Put;

use super::Fanout;
use super::scatter::{Routed, Scatter};
use crate::codec::put;
use crate::dispatch::admit;
use crate::outbox::Caller;
use crate::partition::PartitionRequest;
use crate::scheduler::{BATCH_BYTES_MAX, BATCH_JOBS_MAX};

impl Fanout<'_> {
    pub(super) fn put(self, puts: Vec<Put>, caller: Caller) {
        // Large bodies fill a script batch with fewer jobs.
        let most = |put: &Put| (BATCH_BYTES_MAX / put::weight(put)).clamp(1, BATCH_JOBS_MAX / 2);
        let scatter = Scatter::new(puts, most, |put: Put| {
            admit::put(&put)?;
            let topic = self.dispatcher.known(&put.topic);
            let partition = topic.as_ref().and_then(|topic| match &put.key {
                Some(key) => topic.partition_of_key(key),
                None => topic.next_partition(),
            });
            let partition =
                partition.ok_or_else(|| Error::unavailable("the topic has no partition"))?;
            Ok(Routed::To(partition.clone(), put))
        });
        let request = |puts, reply_to| PartitionRequest::Put { puts, reply_to };
        self.answer_items(scatter, caller, request, Reply::Put);
    }
}
