//! The channels somebody wants to hear, and where each is heard.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

use super::slot_map::Map;
use super::url::Address;

struct Entry {
    slot: u16,
    /// The node that confirmed it, on a connection that still stands.
    heard_at: Option<Address>,
    /// Whether it was heard before, and messages may have been missed since.
    is_lost: bool,
}

/// All channels, whichever node they are on.
pub(super) struct Ledger {
    channels: Mutex<HashMap<Bytes, Entry>>,
    changes: watch::Sender<u64>,
}

impl Ledger {
    /// No channels.
    pub(super) fn new() -> Ledger {
        Ledger { channels: Mutex::default(), changes: watch::channel(0).0 }
    }

    /// Tells of every change.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Wants a channel; twice is once.
    pub(super) fn add(&self, channel: Bytes, slot: u16) {
        self.lock().entry(channel).or_insert(Entry { slot, heard_at: None, is_lost: false });
        self.tell();
    }

    /// Wants it no more.
    pub(super) fn remove(&self, channel: &Bytes) {
        self.lock().remove(channel);
        self.tell();
    }

    /// The slot of a channel, if it is wanted.
    pub(super) fn slot(&self, channel: &Bytes) -> Option<u16> {
        self.lock().get(channel).map(|entry| entry.slot)
    }

    /// Whether the node that now has the slot has confirmed the channel.
    pub(super) fn is_heard(&self, channel: &Bytes, map: &Map) -> bool {
        self.lock().get(channel).is_some_and(|entry| {
            let owner = map.owner(entry.slot).map(|node| &node.address);
            owner.is_some() && owner == entry.heard_at.as_ref()
        })
    }

    /// The nodes that have a wanted channel, by the map.
    pub(super) fn nodes(&self, map: &Map) -> HashSet<Address> {
        let channels = self.lock();
        let owners = channels.values().filter_map(|entry| map.owner(entry.slot));
        owners.map(|node| node.address.clone()).collect()
    }

    /// The wanted channels of one node, by the map.
    pub(super) fn wanted(&self, map: &Map, at: &Address) -> HashSet<Bytes> {
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
                entry.heard_at = Some(at.clone());
                was_lost |= std::mem::take(&mut entry.is_lost);
            }
        }
        drop(entries);
        self.tell();
        was_lost
    }

    /// A node no longer sends some channels, or with `None` any. True if one of them was heard
    /// there: somebody must look for himself.
    pub(super) fn lose(&self, channels: Option<&HashSet<Bytes>>, at: &Address) -> bool {
        let mut is_any = false;
        for (channel, entry) in self.lock().iter_mut() {
            let is_meant = channels.is_none_or(|channels| channels.contains(channel));
            if is_meant && entry.heard_at.as_ref() == Some(at) {
                entry.heard_at = None;
                entry.is_lost = true;
                is_any = true;
            }
        }
        if is_any {
            self.tell();
        }
        is_any
    }

    fn tell(&self) {
        self.changes.send_modify(|version| *version += 1);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Bytes, Entry>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
