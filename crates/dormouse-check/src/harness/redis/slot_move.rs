//! A slot that moves from one primary to another while clients use it.

use std::thread;
use std::time::Duration;

use crate::client::resp::raw::Reply;
use crate::harness::redis::cluster::RedisCluster;

/// MIGRATE gives up after this time.
const TIMEOUT_MS: &str = "5000";

/// A move that has begun. Keys that are not there any more are answered with ASK, commands over
/// keys of which only some are there with TRYAGAIN.
#[derive(Debug)]
pub struct SlotMove<'c> {
    cluster: &'c RedisCluster,
    slot: u16,
    from: usize,
    to: usize,
}

impl RedisCluster {
    /// Begins to move a slot; no key moves yet.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) -> SlotMove<'_> {
        let nodes = self.nodes();
        let text = slot.to_string();
        // First the importing node, then the exporting one: else a client could be redirected to a
        // node that knows nothing of it.
        nodes[to].must(&["CLUSTER", "SETSLOT", &text, "IMPORTING", self.id(from)]);
        nodes[from].must(&["CLUSTER", "SETSLOT", &text, "MIGRATING", self.id(to)]);
        SlotMove { cluster: self, slot, from, to }
    }

    /// Moves a slot key by key, with a break before each, and waits until all nodes know. How many
    /// keys moved.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize, pace: Duration) -> usize {
        let moving = self.begin_move(slot, from, to);
        let mut moved = 0;
        loop {
            // Not a wait for anything: clients are to meet each stage.
            thread::sleep(pace);
            match moving.step(1) {
                0 => break,
                keys => moved += keys,
            }
        }
        moving.finish();
        moved
    }
}

impl SlotMove<'_> {
    /// Moves some of the keys; 0 if none is left.
    pub fn step(&self, keys_max: usize) -> usize {
        let (from, to) = (&self.cluster.nodes()[self.from], &self.cluster.nodes()[self.to]);
        let (slot, count) = (self.slot.to_string(), keys_max.to_string());
        let found = from.must(&["CLUSTER", "GETKEYSINSLOT", &slot, &count]);
        let keys: Vec<&[u8]> = found.list().iter().map(Reply::bytes).collect();
        if keys.is_empty() {
            return 0;
        }
        let (host, port) = (to.host(), to.port().to_string());
        let mut words: Vec<&[u8]> =
            ["MIGRATE", &host, &port, "", "0", TIMEOUT_MS, "KEYS"].map(str::as_bytes).to_vec();
        words.extend_from_slice(&keys);
        // A key that a client removed meanwhile is none of ours.
        from.must(&words);
        keys.len()
    }

    /// Moves what is left, gives the slot to its new owner and waits until all nodes know.
    pub fn finish(self) {
        while self.step(100) > 0 {}
        let slot = self.slot.to_string();
        let owner = self.cluster.id(self.to);
        // First the new owner: its epoch is newer than all others', so that it spreads.
        for node in [self.to, self.from] {
            self.cluster.nodes()[node].must(&["CLUSTER", "SETSLOT", &slot, "NODE", owner]);
        }
        self.cluster.await_owner(self.slot, self.to);
    }
}
