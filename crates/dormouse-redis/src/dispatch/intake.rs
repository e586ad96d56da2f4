//! Where batches come in.
//!
//! To wake a thread costs more than all that is done for a job here. Who comes while a flight is in
//! the air could not leave before it lands, as a rule; so nobody is listened to until then: who
//! lands fetches those who stand here. There are exceptions. So many may come that they are worth a
//! flight of their own: then the bell rings. It counts requests, however many jobs they bring. And
//! another partition may have nothing in the air: so nobody stands here for more than a
//! millisecond.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep_until;

use super::Submission;
use crate::clock;
use crate::partition::SECOND_BATCH_MIN;

/// How long nobody is listened to while a flight is in the air.
const MAX_COALESCE: Duration = Duration::from_millis(1);

/// Rings when enough stand at the door.
#[derive(Default)]
struct WakeThreshold {
    /// Requests that came, less those that were taken in. It may be below zero for a moment: who
    /// comes is counted last.
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

/// A batch has far fewer requests than that.
fn signed(requests: usize) -> isize {
    isize::try_from(requests).unwrap_or(isize::MAX)
}

/// The way to the door, from other threads. Without it nobody can come any more.
pub(crate) struct IntakeSender {
    submissions: UnboundedSender<Submission>,
    threshold: Arc<WakeThreshold>,
}

impl IntakeSender {
    /// Brings a batch to the door; false = there is nobody behind it any more.
    pub(crate) fn send(&self, submission: Submission) -> bool {
        let requests = submission.batch.len();
        let is_open = self.submissions.send(submission).is_ok();
        self.threshold.added(requests);
        is_open
    }
}

/// The door of the desk.
pub(crate) struct Intake {
    submissions: RefCell<UnboundedReceiver<Submission>>,
    threshold: Arc<WakeThreshold>,
    /// Flights of all partitions that have not landed.
    in_flight: Cell<usize>,
    /// The last landing, or the departure of the first.
    since: Cell<Instant>,
    /// None has landed for too long: a node keeps silent, but others may answer.
    is_overdue: Cell<bool>,
    completed: Notify,
    /// A flight has left with many on board.
    large_batch: Notify,
}

impl Intake {
    /// A door, and the way to it.
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
            large_batch: Notify::new(),
        };
        (sender, intake)
    }

    /// Waits for who comes; `None` = nobody can come any more.
    pub(super) async fn recv(&self) -> Option<Submission> {
        while self.has_in_flight() && !self.is_overdue.get() {
            tokio::select! {
                () = self.completed.notified() => {}
                () = self.threshold.reached.notified() => {
                    // They may have been fetched.
                    if let Some(submission) = self.try_recv() {
                        return Some(submission);
                    }
                }
                () = sleep_until((self.since.get() + MAX_COALESCE).into()) => self.is_overdue.set(true),
            }
        }
        let submission = poll_fn(|cx| self.submissions.borrow_mut().poll_recv(cx)).await?;
        self.threshold.removed(submission.batch.len());
        Some(submission)
    }

    /// Who stands here.
    pub(super) fn try_recv(&self) -> Option<Submission> {
        let submission = self.submissions.borrow_mut().try_recv().ok()?;
        self.threshold.removed(submission.batch.len());
        Some(submission)
    }

    /// A flight with so many on board is in the air as long as this is held.
    pub(crate) fn batch_sent(&self, items: usize) -> InFlightGuard<'_> {
        if !self.has_in_flight() {
            self.since.set(clock::instant());
        }
        self.in_flight.set(self.in_flight.get() + 1);
        if items >= SECOND_BATCH_MIN {
            self.large_batch.notify_one();
        }
        InFlightGuard(self)
    }

    /// Whether a flight has not landed.
    pub(super) fn has_in_flight(&self) -> bool {
        self.in_flight.get() > 0
    }

    /// Ends when a flight has left with many on board.
    pub(super) async fn large_batch_sent(&self) {
        self.large_batch.notified().await;
    }
}

/// A flight that has not landed.
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
    use dormouse_core::backend::{Answer, Request, Sink, Ticket};
    use dormouse_core::command::Command;
    use tokio::runtime::Builder;
    use tokio::time::timeout;

    use super::*;
    use crate::inbox::Inbox;

    struct Nobody;

    impl Sink for Nobody {
        fn deliver(&self, _: &mut Vec<(Ticket, Answer)>) {}
    }

    fn submission(requests: usize) -> Submission {
        let request =
            |number| Request { ticket: Ticket(number), command: Command::Ack(Vec::new()) };
        let batch: Vec<_> = (0..requests as u64).map(request).collect();
        let admission = Arc::new(Inbox::default()).admit(&[]).expect("room");
        Submission { batch, sink: Arc::new(Nobody), admission }
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
    fn a_flight_that_does_not_land_keeps_nobody_at_the_door() {
        run(async {
            let (sender, intake) = Intake::new();
            let _in_flight = intake.batch_sent(1);
            for _ in 0..2 {
                assert!(sender.send(submission(0)));
                let added = timeout(Duration::from_secs(10), intake.recv()).await;
                assert!(added.is_ok_and(|submission| submission.is_some()));
            }
        });
    }

    #[test]
    fn enough_at_the_door_are_let_in_at_once() {
        run(async {
            let (sender, intake) = Intake::new();
            let _in_flight = intake.batch_sent(1);
            assert!(sender.send(submission(SECOND_BATCH_MIN - 1)));
            assert!(timeout(Duration::ZERO, intake.recv()).await.is_err());
            assert!(sender.send(submission(1)));
            assert!(timeout(Duration::ZERO, intake.recv()).await.is_ok());
            // Whoever was fetched does not count any more.
            assert!(intake.try_recv().is_some() && intake.try_recv().is_none());
            assert!(sender.send(submission(1)));
            assert!(timeout(Duration::ZERO, intake.recv()).await.is_err());
        });
    }
}
