//! The slot map: which node has which slot.

use std::sync::Arc;

use redis::Value;

use super::node::Node;
use super::slot::SLOTS;
use super::url::Address;

/// An entry of CLUSTER SLOTS: a range of slots, its primary and its replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotRange {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) primary: Address,
    pub(super) replicas: Vec<Address>,
}

/// Reads the reply to CLUSTER SLOTS; `None` if it is not one.
pub(super) fn ranges(reply: &Value, asked: &Address) -> Option<Vec<SlotRange>> {
    let Value::Array(lines) = reply else { return None };
    lines.iter().map(|line| range(line, asked)).collect()
}

fn range(line: &Value, asked: &Address) -> Option<SlotRange> {
    let Value::Array(parts) = line else { return None };
    let [first, last, primary, replicas @ ..] = &parts[..] else { return None };
    Some(SlotRange {
        first: slot(first)?,
        last: slot(last)?,
        primary: address(primary, asked)?,
        // A replica without an address is of no use here, but no reason to fail.
        replicas: replicas.iter().filter_map(|replica| address(replica, asked)).collect(),
    })
}

fn slot(value: &Value) -> Option<u16> {
    match value {
        Value::Int(slot) => u16::try_from(*slot).ok().filter(|slot| *slot < SLOTS),
        _ => None,
    }
}

fn address(value: &Value, asked: &Address) -> Option<Address> {
    let Value::Array(parts) = value else { return None };
    let [host, Value::Int(port), ..] = &parts[..] else { return None };
    let port = u16::try_from(*port).ok().filter(|port| *port > 0)?;
    let host = match host {
        Value::BulkString(host) => String::from_utf8(host.clone()).ok()?,
        _ => String::new(),
    };
    // A node that does not know its own name is the one that was asked.
    let host = if host.is_empty() || host == "?" { asked.host.clone() } else { host };
    Some(Address { host, port })
}

pub(super) struct SlotMap {
    owners: Vec<Option<Arc<Node>>>,
    /// All nodes that can be asked for the slots, replicas too.
    pub(super) known: Vec<Address>,
}

impl SlotMap {
    /// A stand-alone server has all slots.
    pub(super) fn standalone(node: &Arc<Node>) -> SlotMap {
        let owners = vec![Some(Arc::clone(node)); usize::from(SLOTS)];
        SlotMap { owners, known: vec![node.address.clone()] }
    }

    /// The map of a cluster; `node` gives the node of an address.
    pub(super) fn of_ranges(
        ranges: &[SlotRange],
        mut node: impl FnMut(&Address) -> Arc<Node>,
    ) -> SlotMap {
        let mut owners = vec![None; usize::from(SLOTS)];
        let mut known = Vec::new();
        for range in ranges {
            let primary = node(&range.primary);
            for owner in &mut owners[usize::from(range.first)..=usize::from(range.last)] {
                *owner = Some(Arc::clone(&primary));
            }
            known.push(range.primary.clone());
            known.extend(range.replicas.iter().cloned());
        }
        // Every node has an order of its own; sorted, the lists can be compared.
        known.sort_unstable();
        known.dedup();
        SlotMap { owners, known }
    }

    /// The same with one slot moved.
    pub(super) fn with_moved(&self, slot: u16, node: &Arc<Node>) -> SlotMap {
        let mut owners = self.owners.clone();
        if let Some(owner) = owners.get_mut(usize::from(slot)) {
            *owner = Some(Arc::clone(node));
        }
        let mut known = self.known.clone();
        if !known.contains(&node.address) {
            known.push(node.address.clone());
        }
        SlotMap { owners, known }
    }

    /// The primary of a slot.
    pub(super) fn owner(&self, slot: u16) -> Option<&Arc<Node>> {
        self.owners.get(usize::from(slot))?.as_ref()
    }

    /// The primaries, each once.
    pub(super) fn primaries(&self) -> Vec<Arc<Node>> {
        let mut primaries: Vec<Arc<Node>> = Vec::new();
        for owner in self.owners.iter().flatten() {
            // Slots of one primary are mostly neighbours, so the last one is compared first.
            let is_new = !primaries.iter().rev().any(|known| Arc::ptr_eq(known, owner));
            if is_new {
                primaries.push(Arc::clone(owner));
            }
        }
        primaries
    }

    /// How many slots have no primary.
    pub(super) fn uncovered(&self) -> usize {
        self.owners.iter().filter(|owner| owner.is_none()).count()
    }

    /// Whether every slot has the same owner in both.
    pub(super) fn is_same(&self, other: &SlotMap) -> bool {
        let is_same = |(a, b): (&Option<Arc<Node>>, &Option<Arc<Node>>)| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        self.known == other.known && self.owners.iter().zip(&other.owners).all(is_same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<SlotRange>> {
        let asked = Address { host: "asked".into(), port: 1 };
        ranges(&redis::parse_redis_value(text.as_bytes()).unwrap(), &asked)
    }

    #[test]
    fn cluster_slots_are_read() {
        let read = read(
            "*1\r\n*4\r\n:0\r\n:5460\r\n*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\nid\r\n*0\r\n\
             *3\r\n$0\r\n\r\n:7003\r\n$2\r\nid\r\n",
        );
        let range = &read.unwrap()[0];
        assert_eq!((range.first, range.last), (0, 5460));
        assert_eq!(range.primary.to_string(), "127.0.0.1:7000");
        assert_eq!(range.replicas[0].to_string(), "asked:7003");
    }

    #[test]
    fn malformed_replies_are_refused() {
        for text in ["+OK\r\n", "*1\r\n:1\r\n", "*1\r\n*2\r\n:0\r\n:1\r\n"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read("*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n"), None);
    }
}
