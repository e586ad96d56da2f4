//! The intake: the channel by which submissions reach the dispatcher's thread, and when it wakes.
//!
//! Waking a thread costs more than all the work for a job. A request that arrives while a script
//! batch is in flight can, as a rule, only be sent after the reply; so while any batch is in flight
//! the thread is not woken by submissions. The partition that gets the reply drains the intake
//! before it fills its next batch. Two exceptions bound the delay:
//!
//! - When `SECOND_BATCH_MIN` requests are pending they are worth a second batch, and the sender
//!   wakes the thread (`WakeThreshold`).
//! - Another partition may have nothing in flight, so a submission waits for at most
//!   `MAX_COALESCE`.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::{Duration, Instant};

use dormouse_core::backend::{Request, Sink};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep_until;

use crate::clock;
use crate::inbox::InboxShare;
use crate::scheduler::SECOND_BATCH_MIN;

/// A batch of requests that a caller handed over together, and the sink for its answers.
pub(crate) struct Submission {
    pub(crate) batch: Vec<Request>,
    pub(crate) sink: Arc<dyn Sink>,
    /// Its share of the inbox, until it is answered.
    pub(crate) share: InboxShare,
}

/// How long a submission may wait for the reply to a batch in flight.
const MAX_COALESCE: Duration = Duration::from_millis(1);

/// Wakes the dispatcher when enough requests are pending.
#[derive(Default)]
struct WakeThreshold {
    /// Requests sent less requests received. A request is counted after it was sent, so this may be
    /// below zero for a moment.
    pending: AtomicIsize,
    reached: Notify,
}

impl WakeThreshold {
    fn added(&self, requests: usize) {
        let (requests, enough) = (signed(requests), signed(SECOND_BATCH_MIN));
        let before = self.pending.fetch_add(requests, Ordering::Relaxed);
        if before < enough && before + requests >= enough {
            self.reached.notify_one();
        }
    }

    fn removed(&self, requests: usize) {
        self.pending.fetch_sub(signed(requests), Ordering::Relaxed);
    }
}

/// A submission has far fewer requests than `isize::MAX`.
fn signed(requests: usize) -> isize {
    isize::try_from(requests).unwrap_or(isize::MAX)
}

/// The sending side, for other threads. The dispatcher ends when it is dropped.
pub(crate) struct IntakeSender {
    submissions: UnboundedSender<Submission>,
    threshold: Arc<WakeThreshold>,
}

impl IntakeSender {
    /// False = the dispatcher has ended.
    pub(crate) fn send(&self, submission: Submission) -> bool {
        let requests = submission.batch.len();
        let is_open = self.submissions.send(submission).is_ok();
        self.threshold.added(requests);
        is_open
    }
}

/// The receiving side.
pub(crate) struct Intake {
    submissions: RefCell<UnboundedReceiver<Submission>>,
    threshold: Arc<WakeThreshold>,
    /// Script batches in flight, over all partitions.
    in_flight: Cell<usize>,
    /// When the last reply arrived, or the first batch was sent.
    since: Cell<Instant>,
    /// No reply for `MAX_COALESCE`: that node may be silent, but others may answer.
    is_overdue: Cell<bool>,
    completed: Notify,
}

impl Intake {
    pub(crate) fn new() -> (IntakeSender, Intake) {
        let (sender, submissions) = unbounded_channel();
        let threshold = Arc::<WakeThreshold>::default();
        let sender = IntakeSender { submissions: sender, threshold: Arc::clone(&threshold) };
        let intake = Intake {
            submissions: RefCell::new(submissions),
            threshold,
            in_flight: Cell::new(0),
            since: Cell::new(clock::instant()),
            is_overdue: Cell::new(false),
            completed: Notify::new(),
        };
        (sender, intake)
    }

    /// The next submission; `None` = the sender is gone.
    pub(crate) async fn recv(&self) -> Option<Submission> {
        while self.has_in_flight() && !self.is_overdue.get() {
            let overdue_at = self.since.get() + MAX_COALESCE;
            tokio::select! {
                () = self.completed.notified() => {}
                () = self.threshold.reached.notified() => {
                    // A partition may have drained them already.
                    if let Some(submission) = self.try_recv() {
                        return Some(submission);
                    }
                }
                () = sleep_until(overdue_at.into()) => self.is_overdue.set(true),
            }
        }
        let submission = poll_fn(|cx| self.submissions.borrow_mut().poll_recv(cx)).await?;
        self.threshold.removed(submission.batch.len());
        Some(submission)
    }

    /// The next submission that has arrived.
    pub(crate) fn try_recv(&self) -> Option<Submission> {
        let submission = self.submissions.borrow_mut().try_recv().ok()?;
        self.threshold.removed(submission.batch.len());
        Some(submission)
    }

    /// Counts a script batch as in flight until the guard is dropped.
    pub(crate) fn batch_sent(&self) -> InFlightGuard<'_> {
        if !self.has_in_flight() {
            self.since.set(clock::instant());
        }
        self.in_flight.set(self.in_flight.get() + 1);
        InFlightGuard(self)
    }

    fn has_in_flight(&self) -> bool {
        self.in_flight.get() > 0
    }
}

/// A script batch in flight.
pub(crate) struct InFlightGuard<'a>(&'a Intake);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
        self.0.since.set(clock::instant());
        self.0.is_overdue.set(false);
        self.0.completed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use dormouse_core::backend::{Discard, Ticket};
    use dormouse_core::command::Command;
    use tokio::runtime::Builder;
    use tokio::time::timeout;

    use super::*;
    use crate::inbox::Inbox;

    fn submission(requests: usize) -> Submission {
        let request = |number| Request::new(Ticket(number), Command::Ack(Vec::new()));
        let batch: Vec<_> = (0..requests as u64).map(request).collect();
        let share = Arc::new(Inbox::default()).admit(&[]).expect("room");
        Submission { batch, sink: Arc::new(Discard), share }
    }

    fn run(test: impl Future<Output = ()>) {
        Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime")
            .block_on(test);
    }

    #[test]
    fn a_batch_without_reply_does_not_hold_up_submissions() {
        run(async {
            let (sender, intake) = Intake::new();
            let _in_flight = intake.batch_sent();
            for _ in 0..2 {
                assert!(sender.send(submission(0)));
                let received = timeout(Duration::from_secs(10), intake.recv()).await;
                assert!(received.is_ok_and(|submission| submission.is_some()));
            }
        });
    }

    #[test]
    fn enough_pending_requests_are_received_at_once() {
        run(async {
            let (sender, intake) = Intake::new();
            let _in_flight = intake.batch_sent();
            assert!(sender.send(submission(SECOND_BATCH_MIN - 1)));
            assert!(timeout(Duration::ZERO, intake.recv()).await.is_err());
            assert!(sender.send(submission(1)));
            assert!(timeout(Duration::ZERO, intake.recv()).await.is_ok());
            // Received requests do not count any more.
            assert!(intake.try_recv().is_some() && intake.try_recv().is_none());
            assert!(sender.send(submission(1)));
            assert!(timeout(Duration::ZERO, intake.recv()).await.is_err());
        });
    }
}
