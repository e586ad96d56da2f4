//! Getting a new map, from whichever node answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::node::Node;
use super::slot_map::{self, SlotRange};
use super::topology::Topology;
use super::url::Address;

/// Between two refreshes, however many calls fail.
const SPACING: Duration = Duration::from_millis(100);
/// A node that has not answered by now is left to itself, and the next one asked as well.
const HEDGE: Duration = Duration::from_millis(150);
/// A node that has not answered by now is not going to.
const SLOTS_TIMEOUT: Duration = Duration::from_secs(1);

/// Each refresh begins with another node: one that is behind the others cannot keep us there.
static TURN: AtomicUsize = AtomicUsize::new(0);

impl Topology {
    /// Asks for a new map in the background; at most one asks at a time. Nothing to do for a
    /// stand-alone server, which has all slots for ever.
    pub(super) fn refresh_soon(self: &Arc<Self>) {
        if !self.is_cluster || self.is_refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        let topology = Arc::clone(self);
        tokio::spawn(async move {
            if let Some(ranges) = topology.fetch_slots().await {
                topology.install(&ranges);
            }
            sleep(SPACING).await;
            topology.is_refreshing.store(false, Ordering::Release);
        });
    }

    /// Asks one node after the other and takes the first answer, also from one that was slow.
    async fn fetch_slots(self: &Arc<Self>) -> Option<Vec<SlotRange>> {
        let (sender, mut replies) = mpsc::unbounded_channel();
        for address in self.candidates() {
            let (sender, node) = (sender.clone(), self.node(&address));
            // Not ended with this function: a silent node must be found out in full.
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

    /// Nodes of the map, beginning with another each time, then the seeds that are not among them.
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

/// The map as this node sees it.
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
