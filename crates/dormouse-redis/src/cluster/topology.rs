//! All nodes, and the present map.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::meters::{Meters, count};
use super::node::Node;
use super::opener::Opener;
use super::slot_map::{SlotMap, SlotRange};
use super::url::Address;

/// The nodes of the installation and who has which slot. Tasks share it.
pub(super) struct Topology {
    pub(super) opener: Arc<Opener>,
    pub(super) meters: Arc<Meters>,
    pub(super) is_cluster: bool,
    nodes: Mutex<HashMap<Address, Arc<Node>>>,
    map: watch::Sender<Arc<SlotMap>>,
    /// Whether somebody asks for a new map right now.
    pub(super) is_refreshing: AtomicBool,
}

impl Topology {
    /// A stand-alone server, until a map of ranges is installed.
    pub(super) fn new(
        opener: Arc<Opener>,
        meters: Arc<Meters>,
        first: Arc<Node>,
        is_cluster: bool,
    ) -> Topology {
        let (map, _) = watch::channel(Arc::new(SlotMap::standalone(&first)));
        let nodes = Mutex::new(HashMap::from([(first.address.clone(), first)]));
        let is_refreshing = AtomicBool::new(false);
        Topology { opener, meters, is_cluster, nodes, map, is_refreshing }
    }

    /// The map as it is now.
    pub(super) fn map(&self) -> Arc<SlotMap> {
        Arc::clone(&self.map.borrow())
    }

    /// Tells of every change of the map.
    pub(super) fn watch(&self) -> watch::Receiver<Arc<SlotMap>> {
        self.map.subscribe()
    }

    /// Who has this slot, as far as is known.
    pub(super) fn owner(&self, slot: u16) -> Option<Arc<Node>> {
        self.map.borrow().owner(slot).cloned()
    }

    /// Ends when the map gives this slot to somebody else than `node`.
    pub(super) async fn slot_moved(&self, slot: u16, node: &Arc<Node>) {
        let mut map = self.watch();
        let is_elsewhere =
            |map: &Arc<SlotMap>| map.owner(slot).is_some_and(|owner| !Arc::ptr_eq(owner, node));
        if map.wait_for(is_elsewhere).await.is_err() {
            // The map goes only with all of this.
            std::future::pending::<()>().await;
        }
    }

    /// The node at an address; the same one for the same address, so its connections are shared.
    pub(super) fn node(&self, address: &Address) -> Arc<Node> {
        let mut nodes = self.lock();
        if let Some(node) = nodes.get(address) {
            return Arc::clone(node);
        }
        let node = Arc::new(Node::new(address.clone(), &self.opener, &self.meters));
        nodes.insert(address.clone(), Arc::clone(&node));
        node
    }

    /// A node said who has this slot now.
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

    /// Takes over what CLUSTER SLOTS said, and forgets nodes that are no longer there.
    pub(super) fn install(&self, ranges: &[SlotRange]) {
        let new = SlotMap::of_ranges(ranges, |address| self.node(address));
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
