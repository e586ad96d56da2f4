//! put: a job with a group or a key goes to the partition of that, others round robin.

use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::op::Put;

use super::Fanout;
use super::scatter::{Routed, Scatter};
use crate::clock::ANY_TIME;
use crate::codec::put;
use crate::dispatch::{check_place, place_of};
use crate::outbox::Caller;
use crate::partition::PartitionRequest;
use crate::scheduler::{BATCH_BYTES_MAX, BATCH_JOBS_MAX};

impl Fanout<'_> {
    pub(super) fn put(self, puts: Vec<Put>, caller: Caller) {
        // Large bodies fill a script batch with fewer jobs.
        let most = |put: &Put| (BATCH_BYTES_MAX / put::weight(put)).clamp(1, BATCH_JOBS_MAX / 2);
        let scatter = Scatter::new(puts, most, |put: Put| {
            put.check(ANY_TIME)?;
            check_place(&put, self.partition_count(&put.topic))?;
            let topic = self.dispatcher.known(&put.topic);
            let none = || Error::unavailable("the topic has no partition");
            let topic = topic.as_ref().ok_or_else(none)?;
            let partition = match place_of(&put) {
                Some(place) => topic.partition_of_key(&place),
                None => topic.next_partition(),
            };
            let partition = partition.ok_or_else(none)?;
            Ok(Routed::To(partition.clone(), put))
        });
        let request = |puts, reply_to| PartitionRequest::Put { puts, reply_to };
        self.answer_items(scatter, caller, request, Reply::Put);
    }
}
