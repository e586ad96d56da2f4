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

use super::Delivery;
use crate::clock;
use crate::partition::ENOUGH;

/// How long nobody is listened to while a flight is in the air.
const DEAF: Duration = Duration::from_millis(1);

/// Rings when enough stand at the door.
#[derive(Default)]
struct Bell {
    /// Requests that came, less those that were taken in. It may be below zero for a moment: who
    /// comes is counted last.
    standing: AtomicIsize,
    rung: Notify,
}

impl Bell {
    fn came(&self, requests: usize) {
        let (requests, enough) = (signed(requests), signed(ENOUGH));
        let before = self.standing.fetch_add(requests, Ordering::Relaxed);
        if before < enough && before + requests >= enough {
            self.rung.notify_one();
        }
    }

    fn taken(&self, requests: usize) {
        self.standing.fetch_sub(signed(requests), Ordering::Relaxed);
    }
}

/// A batch has far fewer requests than that.
fn signed(requests: usize) -> isize {
    isize::try_from(requests).unwrap_or(isize::MAX)
}

/// The way to the door, from other threads. Without it nobody can come any more.
pub(crate) struct Path {
    deliveries: UnboundedSender<Delivery>,
    bell: Arc<Bell>,
}

impl Path {
    /// Brings a batch to the door; false = there is nobody behind it any more.
    pub(crate) fn bring(&self, delivery: Delivery) -> bool {
        let requests = delivery.batch.len();
        let is_open = self.deliveries.send(delivery).is_ok();
        self.bell.came(requests);
        is_open
    }
}

/// The door of the desk.
pub(crate) struct Door {
    deliveries: RefCell<UnboundedReceiver<Delivery>>,
    bell: Arc<Bell>,
    /// Flights of all partitions that have not landed.
    in_air: Cell<usize>,
    /// The last landing, or the departure of the first.
    since: Cell<Instant>,
    /// None has landed for too long: a node keeps silent, but others may answer.
    is_late: Cell<bool>,
    landed: Notify,
    /// A flight has left with many on board.
    full: Notify,
}

impl Door {
    /// A door, and the way to it.
    pub(crate) fn new() -> (Path, Door) {
        let (sender, deliveries) = unbounded_channel();
        let bell = Arc::<Bell>::default();
        let path = Path { deliveries: sender, bell: Arc::clone(&bell) };
        let door = Door {
            deliveries: RefCell::new(deliveries),
            bell,
            in_air: Cell::new(0),
            since: Cell::new(clock::instant()),
            is_late: Cell::new(false),
            landed: Notify::new(),
            full: Notify::new(),
        };
        (path, door)
    }

    /// Waits for who comes; `None` = nobody can come any more.
    pub(super) async fn wait(&self) -> Option<Delivery> {
        while self.is_in_air() && !self.is_late.get() {
            tokio::select! {
                () = self.landed.notified() => {}
                () = self.bell.rung.notified() => {
                    // They may have been fetched.
                    if let Some(delivery) = self.next() {
                        return Some(delivery);
                    }
                }
                () = sleep_until((self.since.get() + DEAF).into()) => self.is_late.set(true),
            }
        }
        let delivery = poll_fn(|cx| self.deliveries.borrow_mut().poll_recv(cx)).await?;
        self.bell.taken(delivery.batch.len());
        Some(delivery)
    }

    /// Who stands here.
    pub(super) fn next(&self) -> Option<Delivery> {
        let delivery = self.deliveries.borrow_mut().try_recv().ok()?;
        self.bell.taken(delivery.batch.len());
        Some(delivery)
    }

    /// A flight with so many on board is in the air as long as this is held.
    pub(crate) fn depart(&self, items: usize) -> InAir<'_> {
        if !self.is_in_air() {
            self.since.set(clock::instant());
        }
        self.in_air.set(self.in_air.get() + 1);
        if items >= ENOUGH {
            self.full.notify_one();
        }
        InAir(self)
    }

    /// Whether a flight has not landed.
    pub(super) fn is_in_air(&self) -> bool {
        self.in_air.get() > 0
    }

    /// Ends when a flight has left with many on board.
    pub(super) async fn full_flight(&self) {
        self.full.notified().await;
    }
}

/// A flight that has not landed.
pub(crate) struct InAir<'a>(&'a Door);

impl Drop for InAir<'_> {
    fn drop(&mut self) {
        self.0.in_air.set(self.0.in_air.get() - 1);
        self.0.since.set(clock::instant());
        self.0.is_late.set(false);
        self.0.landed.notify_one();
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

    fn delivery(requests: usize) -> Delivery {
        let request =
            |number| Request { ticket: Ticket(number), command: Command::Ack(Vec::new()) };
        let batch: Vec<_> = (0..requests as u64).map(request).collect();
        let admission = Arc::new(Inbox::default()).admit(&[]).expect("room");
        Delivery { batch, sink: Arc::new(Nobody), admission }
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
            let (path, door) = Door::new();
            let _in_air = door.depart(1);
            for _ in 0..2 {
                assert!(path.bring(delivery(0)));
                let came = timeout(Duration::from_secs(10), door.wait()).await;
                assert!(came.is_ok_and(|delivery| delivery.is_some()));
            }
        });
    }

    #[test]
    fn enough_at_the_door_are_let_in_at_once() {
        run(async {
            let (path, door) = Door::new();
            let _in_air = door.depart(1);
            assert!(path.bring(delivery(ENOUGH - 1)));
            assert!(timeout(Duration::ZERO, door.wait()).await.is_err());
            assert!(path.bring(delivery(1)));
            assert!(timeout(Duration::ZERO, door.wait()).await.is_ok());
            // Whoever was fetched does not count any more.
            assert!(door.next().is_some() && door.next().is_none());
            assert!(path.bring(delivery(1)));
            assert!(timeout(Duration::ZERO, door.wait()).await.is_err());
        });
    }
}
