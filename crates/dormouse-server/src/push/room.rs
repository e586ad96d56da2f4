//! Deliveries and bytes under way, of all topics together. Each topic has its share, so that a
//! receiver that never answers takes no others' room.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_core::topic::TopicName;
use tokio::sync::watch;

use crate::shares::Shares;

/// The room for deliveries.
pub(super) struct Room {
    shares: Mutex<RoomShares>,
    /// Somebody found no room and waits for some.
    is_wanted: AtomicBool,
    freed: watch::Sender<u64>,
}

struct RoomShares {
    deliveries: Shares<TopicName>,
    bytes: Shares<TopicName>,
}

/// The room of one delivery, free again when it is dropped.
pub(super) struct TakenRoom {
    room: Arc<Room>,
    topic: TopicName,
    bytes: usize,
}

impl Room {
    pub(super) fn new(deliveries_max: usize, bytes_max: usize) -> Room {
        let shares =
            RoomShares { deliveries: Shares::new(deliveries_max), bytes: Shares::new(bytes_max) };
        Room {
            shares: Mutex::new(shares),
            is_wanted: AtomicBool::new(false),
            freed: watch::Sender::new(0),
        }
    }

    /// How many deliveries of a topic may start now. If none may, `freed` changes when some room
    /// is given back.
    pub(super) fn left_or_want(&self, topic: &TopicName) -> usize {
        match self.left(topic) {
            0 => {
                self.want();
                self.left(topic)
            }
            left => left,
        }
    }

    /// Room for a delivery; `None` if the topic has its share: then `freed` changes when some room
    /// is given back.
    pub(super) fn take_or_want(
        self: &Arc<Room>,
        topic: &TopicName,
        bytes: usize,
    ) -> Option<TakenRoom> {
        self.take(topic, bytes).or_else(|| {
            self.want();
            self.take(topic, bytes)
        })
    }

    /// Changes when room was given back that somebody wanted.
    pub(super) fn freed(&self) -> watch::Receiver<u64> {
        self.freed.subscribe()
    }

    /// Says that somebody waits for room. What is given back from now on is told; what was given
    /// back before is seen by a look after this.
    fn want(&self) {
        self.is_wanted.store(true, Ordering::SeqCst);
    }

    fn left(&self, topic: &TopicName) -> usize {
        let shares = self.lock();
        match shares.bytes.left(topic) {
            0 => 0,
            _ => shares.deliveries.left(topic),
        }
    }

    fn take(self: &Arc<Room>, topic: &TopicName, bytes: usize) -> Option<TakenRoom> {
        let mut shares = self.lock();
        shares.deliveries.take(topic, 1).ok()?;
        if shares.bytes.take(topic, bytes).is_err() {
            shares.deliveries.give(topic, 1);
            return None;
        }
        Some(TakenRoom { room: Arc::clone(self), topic: topic.clone(), bytes })
    }

    fn lock(&self) -> MutexGuard<'_, RoomShares> {
        // Nothing panics while it is held.
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TakenRoom {
    fn drop(&mut self) {
        let mut shares = self.room.lock();
        shares.deliveries.give(&self.topic, 1);
        shares.bytes.give(&self.topic, self.bytes);
        drop(shares);
        if self.room.is_wanted.swap(false, Ordering::SeqCst) {
            self.room.freed.send_modify(|count| *count += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str) -> TopicName {
        TopicName::new(name).unwrap()
    }

    #[test]
    fn a_topic_leaves_room_for_others() {
        let room = Arc::new(Room::new(8, 1_000));
        let dead = topic("dead");
        let taken: Vec<_> = (0..8).map_while(|_| room.take(&dead, 1)).collect();
        assert_eq!(taken.len(), 4, "half, as long as it is alone");
        assert_eq!(room.left(&dead), 0);
        assert_eq!(room.left(&topic("other")), 2);
        assert!(room.take(&topic("other"), 1).is_some());
        drop(taken);
        assert_eq!(room.left(&dead), 4);
    }

    #[test]
    fn bytes_are_bounded_too_and_given_back() {
        let room = Arc::new(Room::new(100, 100));
        let (one, other) = (topic("one"), topic("other"));
        let taken = room.take(&one, 50).unwrap();
        assert!(room.take(&one, 1).is_none());
        assert_eq!(room.left(&one), 0);
        assert!(room.take(&other, 25).is_some());
        let freed = room.freed();
        assert!(room.take_or_want(&one, 1).is_none());
        drop(taken);
        assert!(freed.has_changed().unwrap());
        assert_eq!(room.left(&one), 50);
    }
}
