//! The channels somebody wants to hear, and where each is heard.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

use super::slot_map::SlotMap;
use super::url::Address;

struct Entry {
    slot: u16,
    /// The node that confirmed it, on a connection that still stands.
    confirmed_by: Option<Address>,
    /// Whether it was heard before, and messages may have been missed since.
    is_lost: bool,
}

/// All channels, whichever node they are on.
pub(super) struct Subscriptions {
    channels: Mutex<HashMap<Bytes, Entry>>,
    changes: watch::Sender<u64>,
}

impl Subscriptions {
    /// No channels.
    pub(super) fn new() -> Subscriptions {
        Subscriptions { channels: Mutex::default(), changes: watch::channel(0).0 }
    }

    /// Tells of every change.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Wants a channel; twice is once.
    pub(super) fn add(&self, channel: Bytes, slot: u16) {
        self.lock().entry(channel).or_insert(Entry { slot, confirmed_by: None, is_lost: false });
        self.notify();
    }

    /// Wants it no more.
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

    /// The nodes that have a wanted channel, by the map.
    pub(super) fn nodes(&self, map: &SlotMap) -> HashSet<Address> {
        let channels = self.lock();
        let owners = channels.values().filter_map(|entry| map.owner(entry.slot));
        owners.map(|node| node.address.clone()).collect()
    }

    /// The wanted channels of one node, by the map.
    pub(super) fn wanted(&self, map: &SlotMap, at: &Address) -> HashSet<Bytes> {
        let is_there = |slot| map.owner(slot).is_some_and(|node| node.address == *at);
        let channels = self.lock();
        let there = channels.iter().filter(|(_, entry)| is_there(entry.slot));
        there.map(|(channel, _)| channel.clone()).collect()
    }

    /// A node confirmed channels. True if one of them had been lost.
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

    /// A node no longer sends some channels, or with `None` any. True if one of them was heard
    /// there: somebody must look for himself.
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
