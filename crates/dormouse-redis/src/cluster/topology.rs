//! The nodes of an installation, and the present slot map.
//!
//! The map changes in two ways: `moved` corrects one slot after a MOVED reply, at once; `install`
//! replaces it by a reply to CLUSTER SLOTS. Either may be older than the other. A wrong entry costs
//! one more redirection, never a wrong execution: a node refuses keys of slots it does not have.
//! `install_primary` replaces it by the primary that sentinels name.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::meters::{Meters, count};
use super::node::Node;
use super::opener::Opener;
use super::sentinel::Sentinels;
use super::slot_map::{SlotMap, SlotRange};
use super::url::Address;

/// Shared by all tasks of a client.
pub(super) struct Topology {
    pub(super) opener: Arc<Opener>,
    pub(super) meters: Arc<Meters>,
    pub(super) is_cluster: bool,
    /// Those that name the primary, if it is not a cluster and the URL is of sentinels.
    pub(super) sentinels: Option<Sentinels>,
    nodes: Mutex<HashMap<Address, Arc<Node>>>,
    map: watch::Sender<Arc<SlotMap>>,
    /// A refresh of the slot map is running.
    pub(super) is_refreshing: AtomicBool,
}

impl Topology {
    /// With one node that has all slots, until `install`.
    pub(super) fn new(
        opener: Arc<Opener>,
        meters: Arc<Meters>,
        first: Arc<Node>,
        is_cluster: bool,
        sentinels: Option<Sentinels>,
    ) -> Topology {
        let (map, _) = watch::channel(Arc::new(SlotMap::standalone(&first)));
        let nodes = Mutex::new(HashMap::from([(first.address.clone(), first)]));
        let is_refreshing = AtomicBool::new(false);
        Topology { opener, meters, is_cluster, sentinels, nodes, map, is_refreshing }
    }

    pub(super) fn map(&self) -> Arc<SlotMap> {
        Arc::clone(&self.map.borrow())
    }

    /// Notifies of every change of the slot map.
    pub(super) fn watch(&self) -> watch::Receiver<Arc<SlotMap>> {
        self.map.subscribe()
    }

    pub(super) fn owner(&self, slot: u16) -> Option<Arc<Node>> {
        self.map.borrow().owner(slot).cloned()
    }

    /// Returns when the slot map gives this slot to another node.
    pub(super) async fn slot_moved(&self, slot: u16, node: &Arc<Node>) {
        let mut map = self.watch();
        let is_elsewhere =
            |map: &Arc<SlotMap>| map.owner(slot).is_some_and(|owner| !Arc::ptr_eq(owner, node));
        if map.wait_for(is_elsewhere).await.is_err() {
            // The sender is dropped only with `self`.
            std::future::pending::<()>().await;
        }
    }

    /// The node at an address; one per address, so that its connections are shared.
    pub(super) fn node(&self, address: &Address) -> Arc<Node> {
        let mut nodes = self.lock();
        if let Some(node) = nodes.get(address) {
            return Arc::clone(node);
        }
        let node = Arc::new(Node::new(address.clone(), &self.opener, &self.meters));
        nodes.insert(address.clone(), Arc::clone(&node));
        node
    }

    /// A node replied that another one has this slot now.
    pub(super) fn moved(&self, slot: u16, address: &Address) {
        count(&self.meters.redirections);
        let node = self.node(address);
        self.map.send_if_modified(|map| {
            let is_news = !map.owner(slot).is_some_and(|owner| Arc::ptr_eq(owner, &node));
            if is_news {
                *map = Arc::new(map.with_moved(slot, &node));
            }
            is_news
        });
    }

    /// Takes over the reply to CLUSTER SLOTS, and forgets nodes that have left.
    pub(super) fn install(&self, ranges: &[SlotRange]) {
        self.replace(SlotMap::of_ranges(ranges, |address| self.node(address)));
    }

    /// Gives all slots to one primary.
    pub(super) fn install_primary(&self, node: &Arc<Node>) {
        self.replace(SlotMap::standalone(node));
    }

    fn replace(&self, new: SlotMap) {
        self.lock().retain(|address, _| {
            new.known.contains(address) || self.opener.url.seeds.contains(address)
        });
        self.map.send_if_modified(|map| {
            let is_news = !map.is_same(&new);
            if is_news {
                *map = Arc::new(new);
            }
            is_news
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, Arc<Node>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
