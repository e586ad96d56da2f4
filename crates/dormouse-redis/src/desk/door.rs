//! Where batches come in.
//!
//! To wake a thread costs more than all that is done for a job here. Who comes while a flight is in
//! the air could not leave before it lands, as a rule; so nobody is listened to until then: who
//! lands fetches those who stand here. The rule fails where another partition has nothing in the
//! air: so it holds for a millisecond at most.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use super::Delivery;

/// How long nobody is listened to while a flight is in the air.
const DEAF: Duration = Duration::from_millis(1);

/// The door of the desk.
pub(crate) struct Door {
    deliveries: RefCell<UnboundedReceiver<Delivery>>,
    /// Flights of all partitions that have not landed.
    in_air: Cell<usize>,
    /// None has landed for too long: a node keeps silent, but others may answer.
    is_late: Cell<bool>,
    landed: Notify,
}

impl Door {
    pub(super) fn new(deliveries: UnboundedReceiver<Delivery>) -> Door {
        let deliveries = RefCell::new(deliveries);
        let (in_air, is_late) = (Cell::new(0), Cell::new(false));
        Door { deliveries, in_air, is_late, landed: Notify::new() }
    }

    /// Waits for who comes; `None` = nobody can come any more.
    pub(super) async fn wait(&self) -> Option<Delivery> {
        while self.in_air.get() > 0 && !self.is_late.get() {
            self.is_late.set(timeout(DEAF, self.landed.notified()).await.is_err());
        }
        poll_fn(|cx| self.deliveries.borrow_mut().poll_recv(cx)).await
    }

    /// Who stands here.
    pub(super) fn next(&self) -> Option<Delivery> {
        self.deliveries.borrow_mut().try_recv().ok()
    }

    /// A flight is in the air as long as this is held.
    pub(crate) fn depart(&self) -> InAir<'_> {
        self.in_air.set(self.in_air.get() + 1);
        InAir(self)
    }
}

/// A flight that has not landed.
pub(crate) struct InAir<'a>(&'a Door);

impl Drop for InAir<'_> {
    fn drop(&mut self) {
        self.0.in_air.set(self.0.in_air.get() - 1);
        self.0.is_late.set(false);
        self.0.landed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dormouse_core::backend::{Answer, Sink, Ticket};
    use tokio::runtime::Builder;
    use tokio::sync::mpsc;

    use super::*;
    use crate::inbox::Inbox;

    struct Nobody;

    impl Sink for Nobody {
        fn deliver(&self, _: &mut Vec<(Ticket, Answer)>) {}
    }

    #[test]
    fn a_flight_that_does_not_land_keeps_nobody_at_the_door() {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let (deliver, deliveries) = mpsc::unbounded_channel();
            let door = Door::new(deliveries);
            let _in_air = door.depart();
            for _ in 0..2 {
                let admission = Arc::new(Inbox::default()).admit(&[]).expect("room");
                let delivery = Delivery { batch: Vec::new(), sink: Arc::new(Nobody), admission };
                assert!(deliver.send(delivery).is_ok());
                let came = timeout(Duration::from_secs(10), door.wait()).await;
                assert!(came.is_ok_and(|delivery| delivery.is_some()));
            }
        });
    }
}
