//! Calls and subscriptions on a cluster whose slots move.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::FromRedisValue;

use super::harness::{Server, call, connect, counting, expect_wakeup, free_port, run, until};
use super::subscriptions::{check_delivery, subscribe};
use crate::cluster::slot_map::{SlotRange, ranges};
use crate::cluster::url::Address;
use crate::cluster::{Call, ClusterClient, Wakeup, slot_of};

/// A cluster of primaries that share all slots.
pub(super) struct Cluster {
    pub(super) nodes: Vec<Server>,
    ids: Vec<String>,
}

impl Cluster {
    pub(super) async fn start(primaries: usize) -> Cluster {
        let mut cluster = Cluster { nodes: Vec::new(), ids: Vec::new() };
        let share = 16384_usize.div_ceil(primaries);
        for n in 0..primaries {
            let node = cluster.add().await;
            node.query(&format!("CLUSTER SET-CONFIG-EPOCH {}", n + 1)).await;
            let (first, last) = (n * share, ((n + 1) * share).min(16384) - 1);
            node.query(&format!("CLUSTER ADDSLOTSRANGE {first} {last}")).await;
        }
        cluster.meet().await;
        cluster
    }

    /// Starts one more node, which does not know the others yet.
    pub(super) async fn add(&mut self) -> &Server {
        let bus = free_port().to_string();
        let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"];
        let node = Server::start(&[&options[..], &["--cluster-port", &bus]].concat()).await;
        self.ids.push(node.query_text("CLUSTER MYID").await);
        self.nodes.push(node);
        self.nodes.last().unwrap()
    }

    /// Makes all nodes known to each other, and waits until each reports a healthy cluster.
    pub(super) async fn meet(&self) {
        for node in &self.nodes {
            let bus = node.query_text("CLUSTER NODES").await;
            let bus = bus.split(['@', ',', ' ']).nth(2).unwrap().to_owned();
            let meet = format!("CLUSTER MEET 127.0.0.1 {} {bus}", node.port);
            self.nodes[0].query(&meet).await;
        }
        for node in &self.nodes {
            until("the cluster is well", async || {
                let nodes = node.query_text("CLUSTER NODES").await;
                node.query_text("CLUSTER INFO").await.contains("cluster_state:ok")
                    && nodes.lines().count() == self.nodes.len()
                    && !nodes.contains("handshake")
            })
            .await;
        }
    }

    pub(super) async fn replicate(&self, replica: usize, primary: usize) {
        self.nodes[replica].query(&format!("CLUSTER REPLICATE {}", self.ids[primary])).await;
        until("the replica follows", async || {
            self.nodes[primary].query_text("INFO replication").await.contains("state=online")
        })
        .await;
    }

    /// Begins to move a slot.
    async fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let set = format!("CLUSTER SETSLOT {slot}");
        self.nodes[to].query(&format!("{set} IMPORTING {}", self.ids[from])).await;
        self.nodes[from].query(&format!("{set} MIGRATING {}", self.ids[to])).await;
    }

    /// Migrates the keys of a slot.
    async fn migrate_keys(&self, slot: u16, from: usize, to: usize) {
        loop {
            let keys = self.nodes[from].query(&format!("CLUSTER GETKEYSINSLOT {slot} 10")).await;
            let keys = Vec::<String>::from_redis_value(keys).unwrap();
            if keys.is_empty() {
                return;
            }
            for key in keys {
                let port = self.nodes[to].port;
                self.nodes[from].query(&format!("MIGRATE 127.0.0.1 {port} {key} 0 5000")).await;
            }
        }
    }

    /// Ends a move: all nodes must know the new owner.
    async fn end_move(&self, slot: u16, from: usize, to: usize) {
        let set = format!("CLUSTER SETSLOT {slot} NODE {}", self.ids[to]);
        self.nodes[to].query(&set).await;
        self.nodes[from].query(&set).await;
        // A node that does not know of this move would give the next one the same epoch, and the
        // nodes would not agree which of the two was later.
        for node in &self.nodes {
            let there = self.nodes[to].port;
            until("all nodes know", async || owner_seen_by(node, slot).await == there).await;
        }
    }

    async fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_move(slot, from, to).await;
        self.migrate_keys(slot, from, to).await;
        self.end_move(slot, from, to).await;
    }

    /// A tag whose slot this node had at first.
    pub(super) fn tag_at(&self, node: usize, primaries: usize) -> String {
        let share = 16384_usize.div_ceil(primaries);
        let is_there = |tag: &String| usize::from(slot_of(tag.as_bytes())) / share == node;
        (0..).map(|n| format!("t{n}")).find(is_there).unwrap()
    }
}

/// The port of the primary of a slot, as this node sees it.
async fn owner_seen_by(node: &Server, slot: u16) -> u16 {
    let asked = Address { host: "127.0.0.1".into(), port: node.port };
    let ranges = ranges(&node.query("CLUSTER SLOTS").await, &asked).unwrap();
    let has_it = |range: &&SlotRange| (range.first..=range.last).contains(&slot);
    ranges.iter().find(has_it).map(|range| range.primary.port).unwrap_or_default()
}

fn redirections(client: &ClusterClient) -> u64 {
    client.meters().redirections.load(Ordering::Relaxed)
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_to_the_node_with_the_slot() {
    let cluster = Cluster::start(3).await;
    let (client, ..) = connect(&cluster.nodes[1].url()).await;
    let script = counting();
    for n in 0..100 {
        assert_eq!(run(&client, &call(&script, &n.to_string(), "a")).await, 1);
    }
    assert_eq!(redirections(&client), 0, "the map was right from the start");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_follow_a_slot_that_moved() {
    let cluster = Cluster::start(3).await;
    let (client, ..) = connect(&cluster.nodes[0].url()).await;
    let (script, tag) = (counting(), cluster.tag_at(0, 3));
    assert_eq!(run(&client, &call(&script, &tag, "a")).await, 1);
    cluster.move_slot(slot_of(tag.as_bytes()), 0, 1).await;
    assert_eq!(run(&client, &call(&script, &tag, "b")).await, 2);
    assert!(redirections(&client) >= 1);
    let before = redirections(&client);
    assert_eq!(run(&client, &call(&script, &tag, "c")).await, 3);
    assert_eq!(redirections(&client), before, "it is remembered");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_ask_while_a_slot_moves() {
    let cluster = Cluster::start(3).await;
    let (client, ..) = connect(&cluster.nodes[0].url()).await;
    let (script, tag) = (counting(), cluster.tag_at(0, 3));
    let slot = slot_of(tag.as_bytes());
    assert_eq!(run(&client, &call(&script, &tag, "a")).await, 1);
    cluster.begin_move(slot, 0, 2).await;
    assert_eq!(run(&client, &call(&script, &tag, "b")).await, 2, "the keys are still here");
    assert_eq!(redirections(&client), 0);
    cluster.migrate_keys(slot, 0, 2).await;
    // An ASK redirection to a node without the script: it is loaded, and asked again.
    assert_eq!(run(&client, &call(&script, &tag, "c")).await, 3);
    let waiting = Call { replicas: 1, ..call(&script, &tag, "d") };
    assert_eq!(run(&client, &waiting).await, 4);
    assert!(redirections(&client) >= 2);
    cluster.end_move(slot, 0, 2).await;
    assert_eq!(run(&client, &call(&script, &tag, "a")).await, 1, "a repeat is recognised");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_half_of_its_keys_migrated_waits_for_the_rest() {
    let cluster = Cluster::start(2).await;
    let (client, ..) = connect(&cluster.nodes[0].url()).await;
    let (script, tag) = (counting(), cluster.tag_at(0, 2));
    let slot = slot_of(tag.as_bytes());
    run(&client, &call(&script, &tag, "a")).await;
    cluster.nodes[0].query(&format!("SET dormouse:{{{tag}}}:other 1")).await;
    cluster.begin_move(slot, 0, 1).await;
    let port = cluster.nodes[1].port;
    let half = format!("MIGRATE 127.0.0.1 {port} dormouse:{{{tag}}}:other 0 5000");
    cluster.nodes[0].query(&half).await;
    let mut both = call(&script, &tag, "b");
    both.keys.push(format!("dormouse:{{{tag}}}:other").into());
    let caller = tokio::spawn({
        let client = client.clone();
        async move { run(&client, &both).await }
    });
    let retries = || client.meters().retries.load(Ordering::Relaxed);
    until("TRYAGAIN was retried", async || retries() >= 3).await;
    assert!(!caller.is_finished());
    cluster.migrate_keys(slot, 0, 1).await;
    cluster.end_move(slot, 0, 1).await;
    assert_eq!(caller.await.unwrap(), 2);
}

/// Callers on a slot that moves all the time: each call gets its own reply, and counts once.
#[tokio::test(flavor = "multi_thread")]
async fn calls_survive_slots_on_the_move() {
    let cluster = Cluster::start(3).await;
    let (client, ..) = connect(&cluster.nodes[0].url()).await;
    let (script, tag) = (counting(), cluster.tag_at(0, 3));
    let channel = subscribe(&client, &tag).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..20 {
        let (client, script, tag) = (client.clone(), Arc::clone(&script), tag.clone());
        let is_over = Arc::clone(&is_over);
        callers.spawn(async move {
            let mut made = 0;
            while !is_over.load(Ordering::Acquire) {
                run(&client, &call(&script, &tag, &format!("{caller}/{made}"))).await;
                made += 1;
            }
            made
        });
    }
    let slot = slot_of(tag.as_bytes());
    for turn in 0..10 {
        cluster.move_slot(slot, turn % 3, (turn + 1) % 3).await;
    }
    is_over.store(true, Ordering::Release);
    let made: u64 = callers.join_all().await.into_iter().sum();
    assert_eq!(run(&client, &call(&script, &tag, "last")).await, made + 1);
    client.subscribed(&channel).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_follow_a_slot_that_moved() {
    let cluster = Cluster::start(3).await;
    let (client, _, mut wakeups) = connect(&cluster.nodes[0].url()).await;
    let tag = cluster.tag_at(0, 3);
    let channel = subscribe(&client, &tag).await;
    check_delivery(&cluster.nodes[0], &channel, &mut wakeups).await;
    let other = subscribe(&client, &cluster.tag_at(1, 3)).await;
    for turn in 0..4 {
        let (from, to) = (turn % 3, (turn + 1) % 3);
        cluster.move_slot(slot_of(tag.as_bytes()), from, to).await;
        expect_wakeup(&mut wakeups, &Wakeup::Lost).await;
        expect_wakeup(&mut wakeups, &Wakeup::Restored).await;
        client.subscribed(&channel).await;
        check_delivery(&cluster.nodes[to], &channel, &mut wakeups).await;
    }
    check_delivery(&cluster.nodes[1], &other, &mut wakeups).await;
}
