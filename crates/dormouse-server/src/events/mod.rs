//! Event streams: one ring of events for all clients. The backend is watched only while at least
//! one client subscribes, and for a minute after.

mod feed;
mod ring;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::limits::EVENT_STREAMS_MAX;
use dormouse_core::error::Error;
use dormouse_core::event::Watcher;
use tokio::sync::watch;

use crate::client::BackendClient;
use crate::shares::{Portion, SharedLimit};
use crate::visitor::Claimant;
pub(crate) use feed::{Feed, Filter, StartAt};
use ring::Ring;

/// How long the backend is watched after the last client disconnected: it may resume.
const LINGER: Duration = Duration::from_secs(60);

/// The events of a backend. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Events {
    hub: Arc<Hub>,
}

struct Hub {
    client: BackendClient,
    /// `Some` while the backend is watched.
    ring: Mutex<Option<Arc<Ring>>>,
    /// Open streams.
    streams: watch::Sender<usize>,
    /// Whose they are.
    shares: SharedLimit<Claimant>,
    /// Events that were dropped before a client read them.
    lost: AtomicU64,
}

/// A client's share in the ring: while one exists, the backend is watched.
struct Subscription {
    hub: Arc<Hub>,
    ring: Arc<Ring>,
    #[expect(dead_code, reason = "its drop lets another client subscribe")]
    portion: Portion<Claimant>,
}

impl Events {
    pub(crate) fn new(client: BackendClient) -> Events {
        let (ring, lost, streams) = (Mutex::default(), AtomicU64::default(), watch::Sender::new(0));
        let shares = SharedLimit::new(EVENT_STREAMS_MAX, "event streams");
        Events { hub: Arc::new(Hub { client, ring, streams, shares, lost }) }
    }

    /// Subscribes a client to the events after `from` that pass the filter. Must be called within
    /// a tokio runtime.
    pub(crate) fn follow(
        &self,
        who: Claimant,
        from: StartAt,
        filter: Filter,
    ) -> Result<Feed, Error> {
        Ok(Feed::new(self.subscribe(who)?, from, filter))
    }

    /// The number of open streams.
    pub(crate) fn streams(&self) -> usize {
        *self.hub.streams.borrow()
    }

    /// The number of events that were dropped before a client read them.
    pub(crate) fn lost(&self) -> u64 {
        self.hub.lost.load(Ordering::Relaxed)
    }

    fn subscribe(&self, who: Claimant) -> Result<Subscription, Error> {
        let hub = &self.hub;
        let mut ring = hub.lock();
        if hub.client.is_stopping() {
            return Err(Error::unavailable("the server is stopping; try again"));
        }
        let portion = hub.shares.take(who, 1)?;
        let ring = ring.get_or_insert_with(|| {
            let ring = Arc::new(Ring::new(new_id()));
            hub.client.backend().watch(Some(Arc::clone(&ring) as Arc<dyn Watcher>));
            tokio::spawn(Arc::clone(hub).keep());
            ring
        });
        let ring = Arc::clone(ring);
        hub.streams.send_modify(|streams| *streams += 1);
        Ok(Subscription { hub: Arc::clone(hub), ring, portion })
    }
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Ring>>> {
        // Nothing panics while it is held.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches the backend until there was no stream for a while, or the server stops.
    async fn keep(self: Arc<Hub>) {
        tokio::select! {
            () = self.linger() => {}
            () = self.client.stopping() => {
                self.end(true);
            }
        }
    }

    async fn linger(&self) {
        let mut streams = self.streams.subscribe();
        loop {
            // The sender is in the hub, so these calls cannot fail.
            let _ = streams.wait_for(|&streams| streams == 0).await;
            let back = tokio::time::timeout(LINGER, streams.wait_for(|&streams| streams > 0)).await;
            if back.is_err() && self.end(false) {
                return;
            }
        }
    }

    /// Stops watching; returns false, and does nothing, if a client has just subscribed.
    fn end(&self, by_force: bool) -> bool {
        let mut ring = self.lock();
        if *self.streams.borrow() > 0 && !by_force {
            return false;
        }
        self.client.backend().watch(None);
        *ring = None;
        true
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.streams.send_modify(|streams| *streams -= 1);
    }
}

/// An id that no ring had before, in this process or another: hash keys are random.
fn new_id() -> u32 {
    let random = RandomState::new().hash_one(0_u8);
    (random >> 32) as u32
}
