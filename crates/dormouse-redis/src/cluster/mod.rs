//! The way to Redis and back: a script reaches the node that has its slot, whatever happens on the
//! way, and its answer reaches the caller.
//!
//! Every call concerns one slot, and every script recognises a call that it has answered before. So
//! there is one cure for nearly all trouble: send it again, to wherever the slot is now.

mod check;
mod connection;
mod health;
mod info;
mod meters;
mod node;
mod opener;
mod refresh;
mod retry_delay;
mod script;
mod slot;
mod slot_map;
mod subscriber;
mod subscribers;
mod subscriptions;
#[cfg(test)]
mod tests;
mod topology;
mod url;
mod verdict;
mod wait_batcher;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dormouse_core::error::Error;
use tokio::sync::mpsc;
use tokio::time::sleep;

pub(crate) use check::Findings;
pub(crate) use meters::Meters;
pub(crate) use opener::Patience;
pub(crate) use script::{Call, Departure, Landed, Script};
pub(crate) use slot::slot_of;
pub(crate) use subscriber::Hint;
pub(crate) use verdict::LinkError;

use health::Pulse;
use meters::count;
use node::Node;
use opener::Opener;
use retry_delay::Pause;
use subscriber::Hall;
use subscribers::{Task, keep_ears};
use subscriptions::Ledger;
use topology::Net;
use url::{Address, Seeds};
use verdict::Verdict;

/// A call without an answer for this long makes us ask whether its node is still the one.
const SUSPICION: Duration = Duration::from_millis(200);
/// Redirections in a row that are followed without a pause. Two nodes that each name the other
/// would keep a call running in circles.
const REDIRECTIONS_MAX: u32 = 3;

/// Whether a URL of Redis can be read; nothing is connected to.
pub fn check_url(url: &str) -> Result<(), Error> {
    Seeds::parse(url).map(|_| ())
}

/// The way to Redis. Clones share everything.
#[derive(Clone)]
pub(crate) struct Link {
    inside: Arc<Inside>,
}

struct Inside {
    net: Arc<Net>,
    ledger: Arc<Ledger>,
    pulse: Pulse,
    /// Ends with the last clone.
    _ears: Task,
}

impl Link {
    /// Connects and checks that the installation can serve; `replicas` is how many each primary
    /// must have. Hints about channels go to `hints`.
    pub(crate) async fn open(
        url: &str,
        replicas: u32,
        hints: mpsc::UnboundedSender<Hint>,
    ) -> Result<(Link, Findings), Error> {
        Link::open_with(url, replicas, hints, Patience::default()).await
    }

    /// The same, with other waits: tests cannot wait for seconds.
    pub(crate) async fn open_with(
        url: &str,
        replicas: u32,
        hints: mpsc::UnboundedSender<Hint>,
        patience: Patience,
    ) -> Result<(Link, Findings), Error> {
        let opener = Arc::new(Opener { seeds: Seeds::parse(url)?, patience });
        let (net, findings) = check::check(opener, replicas).await?;
        let ledger = Arc::new(Ledger::new());
        let hall = Hall { net: Arc::clone(&net), ledger: Arc::clone(&ledger), hints };
        let _ears = Task::spawn(keep_ears(hall));
        let inside = Inside { net, ledger, pulse: Pulse::default(), _ears };
        Ok((Link { inside: Arc::new(inside) }, findings))
    }

    /// Whether slots are spread over nodes.
    pub(crate) fn is_cluster(&self) -> bool {
        self.inside.net.is_cluster
    }

    /// What it counts of itself.
    pub(crate) fn meters(&self) -> &Meters {
        &self.inside.net.meters
    }

    /// Wants the messages of a channel, through reconnects, failovers and moves of its slot.
    pub(crate) fn subscribe(&self, slot: u16, channel: Bytes) {
        self.inside.ledger.add(channel, slot);
    }

    /// Ends when the present primary has confirmed the channel, or nobody wants it.
    pub(crate) async fn subscribed(&self, channel: &Bytes) {
        let Inside { net, ledger, .. } = &*self.inside;
        let (mut changes, mut map) = (ledger.watch(), net.watch());
        while ledger.slot(channel).is_some() && !ledger.is_heard(channel, &net.map()) {
            tokio::select! {
                _ = changes.changed() => {}
                _ = map.changed() => {}
            }
        }
    }

    /// Wants the channel no more.
    pub(crate) fn unsubscribe(&self, channel: &Bytes) {
        self.inside.ledger.remove(channel);
    }

    /// Brings a call to the primary of its slot, as often as it takes. Whoever loses patience drops
    /// the future; the script may still run.
    pub(crate) async fn call(&self, call: &Call) -> Result<Landed, LinkError> {
        self.call_noting(call, &Departure::default()).await
    }

    /// The same; notes when it leaves.
    pub(crate) async fn call_noting(
        &self,
        call: &Call,
        departure: &Departure,
    ) -> Result<Landed, LinkError> {
        let net = &self.inside.net;
        count(&net.meters.calls);
        let pause = Pause::new();
        let mut journey = Journey { net, call, departure, pause, asked: None, redirections: 0 };
        let mut is_repeated = false;
        loop {
            match journey.attempt().await {
                Ok(landed) => return Ok(Landed { is_repeated, ..landed }),
                Err((_, Verdict::Fatal(error))) => return Err(error),
                Err((node, verdict)) => {
                    count(&net.meters.retries);
                    journey.heed(node, verdict).await?;
                    is_repeated = true;
                }
            }
        }
    }
}

/// A call between its attempts.
struct Journey<'a> {
    net: &'a Arc<Net>,
    call: &'a Call,
    departure: &'a Departure,
    pause: Pause,
    /// Whom to ask in the next attempt, and only then.
    asked: Option<Arc<Node>>,
    redirections: u32,
}

impl Journey<'_> {
    /// Sends the call once. On failure: where it was sent, and what to do.
    async fn attempt(&mut self) -> Result<Landed, (Option<Arc<Node>>, Verdict)> {
        let asked = self.asked.take();
        let is_asking = asked.is_some();
        let Some(node) = asked.or_else(|| self.net.owner(self.call.slot)) else {
            return Err((None, Verdict::Again));
        };
        match self.send(&node, is_asking).await {
            Ok(landed) => Ok(landed),
            Err(verdict) => {
                // It is taught where it was asked.
                self.asked = (is_asking && verdict == Verdict::Load).then(|| Arc::clone(&node));
                Err((Some(node), verdict))
            }
        }
    }

    /// A frozen node answers nothing, and the others elect a new primary sooner than our patience
    /// ends. So while we wait we look whether the slot has gone elsewhere.
    async fn send(&self, node: &Arc<Node>, is_asking: bool) -> Result<Landed, Verdict> {
        let mut sent = std::pin::pin!(node.send(self.call, is_asking, self.departure));
        let mut left = std::pin::pin!(self.net.left(self.call.slot, node));
        loop {
            tokio::select! {
                biased;
                landed = &mut sent => return landed,
                () = &mut left, if !is_asking => return Err(Verdict::Elsewhere),
                () = sleep(SUSPICION) => self.net.refresh_soon(),
            }
        }
    }

    /// Does what must be done before the next attempt.
    async fn heed(&mut self, node: Option<Arc<Node>>, verdict: Verdict) -> Result<(), LinkError> {
        match (verdict, node) {
            (Verdict::Load, Some(node)) => self.load(&node).await,
            (Verdict::Moved(place), Some(node)) => {
                if let Some(address) = Address::parse(&place, &node.address) {
                    self.net.moved(self.call.slot, &address);
                }
                self.net.refresh_soon();
                self.redirected().await;
                Ok(())
            }
            (Verdict::Ask(place), Some(node)) => {
                count(&self.net.meters.redirections);
                self.redirected().await;
                let address = Address::parse(&place, &node.address);
                self.asked = address.map(|address| self.net.node(&address));
                Ok(())
            }
            (Verdict::Elsewhere, _) => Ok(()),
            (Verdict::Fatal(error), _) => Err(error),
            (verdict, node) => {
                if let (Verdict::Demoted, Some(node)) = (verdict, node) {
                    node.distrust();
                }
                self.rest().await;
                Ok(())
            }
        }
    }

    async fn load(&mut self, node: &Arc<Node>) -> Result<(), LinkError> {
        match node.load(&self.call.script).await {
            Ok(()) => Ok(()),
            Err(Verdict::Fatal(error)) => Err(error),
            Err(_) => {
                self.rest().await;
                Ok(())
            }
        }
    }

    async fn redirected(&mut self) {
        self.redirections += 1;
        if self.redirections > REDIRECTIONS_MAX {
            self.rest().await;
        }
    }

    /// Waits, but not longer than until a new map says that the slot is elsewhere.
    async fn rest(&mut self) {
        self.redirections = 0;
        let owner = self.net.owner(self.call.slot);
        self.net.refresh_soon();
        let pause = self.pause.next();
        let moved = async {
            match &owner {
                Some(node) => self.net.left(self.call.slot, node).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleep(pause) => {}
            () = moved => {}
        }
    }
}
