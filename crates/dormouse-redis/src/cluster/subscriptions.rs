//! The wanted channels, and which node has confirmed each.
//!
//! Partitions add and remove channels; the subscribers of the nodes, each for its own slots,
//! confirm them and mark them lost. A channel counts as subscribed only if the node that confirmed
//! it is the one that has the slot by the present slot map.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

use super::slot_map::SlotMap;
use super::url::Address;

struct Entry {
    slot: u16,
    /// The node that confirmed it, on a connection that is still open.
    confirmed_by: Option<Address>,
    /// It was confirmed before, and messages may have been missed since.
    is_lost: bool,
}

/// The channels of all nodes.
pub(super) struct Subscriptions {
    channels: Mutex<HashMap<Bytes, Entry>>,
    changes: watch::Sender<u64>,
}

impl Subscriptions {
    pub(super) fn new() -> Subscriptions {
        Subscriptions { channels: Mutex::default(), changes: watch::channel(0).0 }
    }

    /// Notifies of every change.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn add(&self, channel: Bytes, slot: u16) {
        self.lock().entry(channel).or_insert(Entry { slot, confirmed_by: None, is_lost: false });
        self.notify();
    }

    pub(super) fn remove(&self, channel: &Bytes) {
        self.lock().remove(channel);
        self.notify();
    }

    /// The slot of a channel, if it is wanted.
    pub(super) fn slot(&self, channel: &Bytes) -> Option<u16> {
        self.lock().get(channel).map(|entry| entry.slot)
    }

    /// Whether the node that now has the slot has confirmed the channel.
    pub(super) fn is_confirmed(&self, channel: &Bytes, map: &SlotMap) -> bool {
        self.lock().get(channel).is_some_and(|entry| {
            let owner = map.owner(entry.slot).map(|node| &node.address);
            owner.is_some() && owner == entry.confirmed_by.as_ref()
        })
    }

    /// The nodes that have a wanted channel.
    pub(super) fn nodes(&self, map: &SlotMap) -> HashSet<Address> {
        let channels = self.lock();
        let owners = channels.values().filter_map(|entry| map.owner(entry.slot));
        owners.map(|node| node.address.clone()).collect()
    }

    /// The wanted channels of one node.
    pub(super) fn wanted(&self, map: &SlotMap, at: &Address) -> HashSet<Bytes> {
        let is_there = |slot| map.owner(slot).is_some_and(|node| node.address == *at);
        let channels = self.lock();
        let there = channels.iter().filter(|(_, entry)| is_there(entry.slot));
        there.map(|(channel, _)| channel.clone()).collect()
    }

    /// A node confirmed channels. True = one of them had been lost.
    pub(super) fn confirm(&self, channels: &[Bytes], at: &Address) -> bool {
        let mut was_lost = false;
        let mut entries = self.lock();
        for channel in channels {
            if let Some(entry) = entries.get_mut(channel) {
                entry.confirmed_by = Some(at.clone());
                was_lost |= std::mem::take(&mut entry.is_lost);
            }
        }
        drop(entries);
        self.notify();
        was_lost
    }

    /// A node lost some channels, or with `None` all. True = one of them was confirmed there, so
    /// messages may be missed.
    pub(super) fn mark_lost(&self, channels: Option<&HashSet<Bytes>>, at: &Address) -> bool {
        let mut is_any = false;
        for (channel, entry) in self.lock().iter_mut() {
            let is_meant = channels.is_none_or(|channels| channels.contains(channel));
            if is_meant && entry.confirmed_by.as_ref() == Some(at) {
                entry.confirmed_by = None;
                entry.is_lost = true;
                is_any = true;
            }
        }
        if is_any {
            self.notify();
        }
        is_any
    }

    fn notify(&self) {
        self.changes.send_modify(|version| *version += 1);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Bytes, Entry>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
