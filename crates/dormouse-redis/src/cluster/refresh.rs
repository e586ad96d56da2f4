//! Renews the slot map, from the first node that answers, or by what the sentinels say.
//!
//! Nodes are asked one after the other, `HEDGE` apart, until one replies; a silent node thus delays
//! a refresh by `HEDGE` only. Each refresh starts with another node, so that one with an outdated
//! map cannot mislead for long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dormouse_core::error::Error;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::node::Node;
use super::sentinel::Sentinels;
use super::slot_map::{self, SlotRange};
use super::topology::Topology;
use super::url::Address;

/// The least time between two refreshes, however many calls fail.
const SPACING: Duration = Duration::from_millis(100);
/// After this long without a reply the next node is asked as well.
const HEDGE: Duration = Duration::from_millis(150);
/// After this long a node counts as silent, and its connections are closed.
const SLOTS_TIMEOUT: Duration = Duration::from_secs(1);

/// Sentinels are asked at least this often: an old primary that is cut off from them may still
/// answer us.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// The node to start with, modulo their number.
static TURN: AtomicUsize = AtomicUsize::new(0);

impl Topology {
    /// Starts a refresh in the background, unless one is running. A stand-alone server without
    /// sentinels has all slots for ever, so there is nothing to do.
    pub(super) fn refresh_soon(self: &Arc<Self>) {
        let can_change = self.is_cluster || self.sentinels.is_some();
        if !can_change || self.is_refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        let topology = Arc::clone(self);
        tokio::spawn(async move {
            if let Some(sentinels) = &topology.sentinels {
                topology.follow(sentinels).await;
            } else if let Some(ranges) = topology.fetch_slots().await {
                topology.install(&ranges);
            }
            sleep(SPACING).await;
            topology.is_refreshing.store(false, Ordering::Release);
        });
    }

    /// Gives all slots to the primary that the sentinels name; nothing changes if they do not.
    async fn follow(&self, sentinels: &Sentinels) {
        let found = self.find_new_primary(sentinels).await;
        sentinels.note(found.as_ref().err());
        if let Ok(Some(node)) = found {
            let (service, address) = (&sentinels.service, &node.address);
            tracing::info!("redis: the primary of `{service}` is {address} now");
            self.install_primary(&node);
        }
    }

    /// `None` if the primary is the present one: whether that answers is found out by calls.
    async fn find_new_primary(&self, sentinels: &Sentinels) -> Result<Option<Arc<Node>>, Error> {
        let claim = sentinels.claim().await?;
        if self.owner(0).is_some_and(|owner| owner.address == claim.primary) {
            sentinels.accept(&claim);
            return Ok(None);
        }
        let node = self.node(&claim.primary);
        sentinels.confirm(&claim, &node).await?;
        Ok(Some(node))
    }

    /// Returns the first reply, also of a node that was slow.
    async fn fetch_slots(self: &Arc<Self>) -> Option<Vec<SlotRange>> {
        let (sender, mut replies) = mpsc::unbounded_channel();
        for address in self.candidates() {
            let (sender, node) = (sender.clone(), self.node(&address));
            // Not cancelled with this function: the timeout must find out a silent node.
            tokio::spawn(async move { sender.send(query_slots(&node).await) });
            if let Ok(Some(Some(ranges))) = timeout(HEDGE, replies.recv()).await {
                return Some(ranges);
            }
        }
        drop(sender);
        while let Some(answer) = replies.recv().await {
            if answer.is_some() {
                return answer;
            }
        }
        None
    }

    /// The nodes of the map, rotated, then the seed nodes that are not among them.
    fn candidates(&self) -> Vec<Address> {
        let mut known = self.map().known.clone();
        let turn = TURN.fetch_add(1, Ordering::Relaxed) % known.len().max(1);
        known.rotate_left(turn);
        for seed in &self.opener.url.seeds {
            if !known.contains(seed) {
                known.push(seed.clone());
            }
        }
        known
    }
}

/// Asks the sentinels again and again.
pub(super) async fn watch_sentinels(topology: Arc<Topology>) {
    loop {
        sleep(ASK_EVERY).await;
        topology.refresh_soon();
    }
}

/// The slots as this node sees them.
pub(super) async fn query_slots(node: &Arc<Node>) -> Option<Vec<SlotRange>> {
    let mut command = redis::cmd("CLUSTER");
    command.arg("SLOTS");
    match timeout(SLOTS_TIMEOUT, node.query(&command)).await {
        Ok(Ok(reply)) => {
            slot_map::ranges(&reply, &node.address).filter(|ranges| !ranges.is_empty())
        }
        Ok(Err(_)) => None,
        Err(_) => {
            node.reset_connections();
            None
        }
    }
}
