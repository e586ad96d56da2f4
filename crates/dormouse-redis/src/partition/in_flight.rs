//! The script batches of a partition that Redis has not answered yet.
//!
//! A second batch hides the round trip: while Redis executes one, the other is on its way or
//! already in the socket. Each has a sequence of its own, so that either can be resent alone. Both
//! travel on one connection, so they are executed, and answered, in the order in which they were
//! sent, unless one was resent beside the other: then its place in the order is unknown.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::SubmissionNo;
use super::decode::CompletedBatch;
use crate::clock;

/// Batches in flight per partition. With one, Redis falls asleep between two batches, and waking it
/// costs more than executing them.
const SEQUENCES_MAX: u8 = 2;

/// Queued items that are worth a second batch while one is in flight. For fewer, the fixed cost of
/// a script exceeds the gain.
pub(crate) const SECOND_BATCH_MIN: usize = 20;

/// While a batch has been in flight for this long, no second one is sent.
const SLOW_REPLY: Duration = Duration::from_millis(500);

type Execution<'a> = Pin<Box<dyn Future<Output = Option<CompletedBatch>> + 'a>>;

/// The batches in flight, in the order in which they were sent.
pub(super) struct InFlight<'a> {
    sequences: u8,
    batches: Vec<InFlightBatch<'a>>,
}

struct InFlightBatch<'a> {
    sequence: u8,
    info: BatchInfo,
    /// Another batch was in flight at the same time.
    was_concurrent: bool,
    sent_at: Instant,
    execution: Execution<'a>,
}

/// What the batcher must know of a batch in flight.
pub(super) struct BatchInfo {
    /// It polls for a blocking waiter.
    pub(super) has_blocking: bool,
    /// The submissions that have requests in it.
    pub(super) submissions: Vec<SubmissionNo>,
}

impl<'a> InFlight<'a> {
    /// With replicas, calls that wait for them use a connection of their own, and the order of
    /// execution is unknown; so only one batch is in flight.
    pub(super) fn new(replicas: u32) -> InFlight<'a> {
        InFlight { sequences: if replicas == 0 { SEQUENCES_MAX } else { 1 }, batches: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    pub(super) fn free_sequence(&self) -> Option<u8> {
        (0..self.sequences)
            .find(|&sequence| self.batches.iter().all(|entry| entry.sequence != sequence))
    }

    pub(super) fn add(&mut self, sequence: u8, info: BatchInfo, execution: Execution<'a>) {
        let was_concurrent = !self.batches.is_empty();
        for entry in &mut self.batches {
            entry.was_concurrent = true;
        }
        let sent_at = clock::instant();
        self.batches.push(InFlightBatch { sequence, info, was_concurrent, sent_at, execution });
    }

    /// Whether Redis is slow to answer, or silent. A second batch would gain nothing, and its
    /// requests would time out later than those in the queue.
    pub(super) fn is_slow(&self) -> bool {
        self.batches.iter().any(|entry| entry.sent_at.elapsed() > SLOW_REPLY)
    }

    /// Whether a poll for a blocking waiter is in flight.
    pub(super) fn has_blocking(&self) -> bool {
        self.batches.iter().any(|entry| entry.info.has_blocking)
    }

    /// The submissions that have a request in flight.
    pub(super) fn submissions(&self) -> impl Iterator<Item = SubmissionNo> {
        self.batches.iter().flat_map(|entry| &entry.info.submissions).copied()
    }

    /// Waits for the next batch to be answered; of several, the one sent first. `None` = it failed,
    /// and its requests have been answered.
    pub(super) async fn next_completed(&mut self) -> Option<CompletedBatch> {
        poll_fn(|cx| {
            for (index, entry) in self.batches.iter_mut().enumerate() {
                if let Poll::Ready(completed) = entry.execution.as_mut().poll(cx) {
                    let entry = self.batches.remove(index);
                    let was_concurrent = entry.was_concurrent;
                    return Poll::Ready(
                        completed.map(|completed| CompletedBatch { was_concurrent, ..completed }),
                    );
                }
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::runtime::Builder;
    use tokio::sync::oneshot;

    use super::super::batch::ScriptBatch;
    use super::super::decode::ScriptReply;
    use super::*;

    fn no_info() -> BatchInfo {
        BatchInfo { has_blocking: false, submissions: Vec::new() }
    }

    /// A batch that is recognised by its time.
    fn completed(name: u64) -> CompletedBatch {
        let answers = Bytes::new();
        let reply = ScriptReply { now_ms: name, answers, records: Vec::new(), confirmed: true };
        CompletedBatch {
            batch: ScriptBatch::default(),
            reply,
            was_resent: false,
            was_concurrent: false,
        }
    }

    async fn completes(in_flight: &mut InFlight<'_>) -> (u64, bool) {
        let completed = in_flight.next_completed().await.expect("a reply");
        (completed.reply.now_ms, completed.was_concurrent)
    }

    #[test]
    fn batches_complete_in_the_order_they_were_sent() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut in_flight = InFlight::new(0);
            for name in 0..2 {
                let sequence = in_flight.free_sequence().expect("a free sequence");
                in_flight.add(sequence, no_info(), Box::pin(async move { Some(completed(name)) }));
            }
            assert_eq!(in_flight.free_sequence(), None);
            assert_eq!(
                [completes(&mut in_flight).await.0, completes(&mut in_flight).await.0],
                [0, 1]
            );
            assert!(in_flight.is_empty());
        });
    }

    #[test]
    fn a_batch_knows_whether_another_was_in_flight() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut in_flight = InFlight::new(0);
            in_flight.add(0, no_info(), Box::pin(async { Some(completed(1)) }));
            assert_eq!(completes(&mut in_flight).await, (1, false));
            let (release, released) = oneshot::channel();
            in_flight.add(
                0,
                no_info(),
                Box::pin(async {
                    released.await.expect("the test holds the sender");
                    Some(completed(2))
                }),
            );
            in_flight.add(1, no_info(), Box::pin(async { Some(completed(3)) }));
            assert_eq!(completes(&mut in_flight).await, (3, true));
            release.send(()).expect("the batch is in flight");
            assert_eq!(completes(&mut in_flight).await, (2, true));
        });
    }

    #[test]
    fn with_replicas_one_batch_is_in_flight() {
        let mut in_flight = InFlight::new(1);
        in_flight.add(0, no_info(), Box::pin(async { None }));
        assert_eq!(in_flight.free_sequence(), None);
    }
}
