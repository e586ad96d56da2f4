//! A real Redis Cluster: some primaries, each with replicas.

use std::time::{Duration, Instant};

use crate::client::resp::raw::Reply;
use crate::harness::redis::config::RedisConfig;
use crate::harness::redis::server::RedisServer;
use crate::harness::redis::view::View;
use crate::harness::redis::wait::until;

/// A node that does not answer for this long is suspected: short for tests, and long enough for a
/// busy machine.
pub const NODE_TIMEOUT: Duration = Duration::from_millis(1500);
/// All slots are below.
pub const SLOTS: u16 = 16_384;
const TIMEOUT: Duration = Duration::from_secs(60);

/// A cluster on this machine. Nodes have numbers: first the primaries of the beginning, then their
/// replicas in turn.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
    /// By number; a node keeps its id when it starts again.
    ids: Vec<String>,
    /// Stopped or cut off: not to be asked, and not to be waited for.
    away: Vec<bool>,
    /// Of the last node that went away.
    went_at: Instant,
}

impl RedisCluster {
    /// Starts a cluster without files and waits until it is whole.
    pub fn start(primaries: usize, replicas_each: usize) -> RedisCluster {
        RedisCluster::with(primaries, replicas_each, &RedisConfig::default())
    }

    /// Starts a cluster whose nodes are all made so, and waits until it is whole.
    pub fn with(primaries: usize, replicas_each: usize, config: &RedisConfig) -> RedisCluster {
        let count = primaries * (1 + replicas_each);
        let nodes = (0..count).map(|_| RedisServer::start(as_node(config.clone()))).collect();
        RedisCluster::join(nodes, primaries)
    }

    /// Makes servers that do not know each other one cluster.
    pub(crate) fn join(nodes: Vec<RedisServer>, primaries: usize) -> RedisCluster {
        let ids = nodes.iter().map(|node| node.must(&["CLUSTER", "MYID"]).text()).collect();
        let away = vec![false; nodes.len()];
        let cluster = RedisCluster { nodes, ids, away, went_at: Instant::now() };
        cluster.give_slots(primaries);
        cluster.meet();
        for (number, node) in cluster.nodes.iter().enumerate().skip(primaries) {
            node.must(&["CLUSTER", "REPLICATE", &cluster.ids[number % primaries]]);
        }
        cluster.await_whole();
        cluster
    }

    /// `redis://` and all nodes, with commas between.
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.nodes.iter().map(RedisServer::address).collect();
        format!("redis://{}", addresses.join(","))
    }

    /// All nodes, also those that were killed.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// Runs a command on a node, wherever its keys are.
    pub fn command_on<W: AsRef<[u8]>>(&self, node: usize, words: &[W]) -> Reply {
        self.nodes[node].command(words)
    }

    /// The slot of a key.
    pub fn slot_of(&self, key: &str) -> u16 {
        let slot = self.nodes[self.present()[0]].must(&["CLUSTER", "KEYSLOT", key]).int();
        u16::try_from(slot).expect("slots are small")
    }

    /// The node that has the slot; one that went away has it until another one took it over.
    pub fn primary_of(&self, slot: u16) -> usize {
        let view = self.view(self.present()[0]).expect("a node that is present answers");
        let owner = view.owner(slot).unwrap_or_else(|| panic!("nobody has slot {slot}: {view:?}"));
        self.number(owner)
    }

    /// A replica of this primary; panics if it has none.
    pub fn replica_of(&self, primary: usize) -> usize {
        let view = self.view(self.present()[0]).expect("a node that is present answers");
        let id = Some(&self.ids[primary]);
        let replica = view.0.iter().find(|node| node.copies.as_ref() == id);
        let replica = replica.unwrap_or_else(|| panic!("nobody copies node {primary}: {view:?}"));
        self.number(&replica.id)
    }

    /// The nodes that are primaries now.
    pub fn primaries(&self) -> Vec<usize> {
        let view = self.view(self.present()[0]).expect("a node that is present answers");
        let well = view.0.iter().filter(|node| node.is_primary && node.is_well);
        let mut numbers: Vec<usize> = well.map(|node| self.number(&node.id)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// kill -9 of a node that is a primary now.
    pub fn kill_primary(&mut self, node: usize) {
        assert!(self.primaries().contains(&node), "node {node} is a primary");
        self.kill(node);
    }

    /// kill -9 of any node.
    pub fn kill(&mut self, node: usize) {
        self.set_away(node, true);
        self.nodes[node].kill_nine();
    }

    /// SIGSTOP to a node.
    pub fn freeze(&mut self, node: usize) {
        self.set_away(node, true);
        self.nodes[node].freeze();
    }

    /// SIGCONT to a node.
    pub fn thaw(&mut self, node: usize) {
        self.nodes[node].thaw();
        self.set_away(node, false);
    }

    /// Starts a node again; it comes back as whatever the others tell it to be.
    pub fn restart(&mut self, node: usize) {
        self.nodes[node].restart();
        self.set_away(node, false);
    }

    /// Waits until a node that is present has the slot, takes writes, and all others know it. How
    /// long that was since the last node went away.
    pub fn await_failover(&self, slot: u16) -> Duration {
        until("a failover", TIMEOUT, || {
            let present = self.present();
            let mut owner = None;
            for number in &present {
                let view = self.view(*number)?;
                let named = view.owner(slot).map(|id| self.number(id));
                if named.is_none_or(|named| self.away[named])
                    || *owner.get_or_insert(named) != named
                {
                    return Err(format!("node {number} says that {named:?} has slot {slot}"));
                }
            }
            present.iter().try_for_each(|number| self.check_state(*number))
        });
        self.went_at.elapsed()
    }

    /// Waits until all nodes are back and agree about owners, and all replicas are in sync.
    pub fn await_whole(&self) {
        until("a whole cluster", TIMEOUT, || {
            (0..self.nodes.len()).try_for_each(|number| {
                self.check_state(number)?;
                self.check_link(number)?;
                self.check_view(number)
            })
        });
    }

    /// The nodes that can be asked.
    fn present(&self) -> Vec<usize> {
        let present = self.away.iter().enumerate().filter(|(_, away)| !**away);
        let present: Vec<usize> = present.map(|(number, _)| number).collect();
        assert!(!present.is_empty(), "all nodes are away");
        present
    }

    pub(crate) fn set_away(&mut self, node: usize, away: bool) {
        self.away[node] = away;
        if away {
            self.went_at = Instant::now();
        }
    }

    pub(crate) fn id(&self, node: usize) -> &str {
        &self.ids[node]
    }

    /// Waits until all nodes that are present say that this one has the slot.
    pub(crate) fn await_owner(&self, slot: u16, node: usize) {
        until("the new owner of a slot", TIMEOUT, || {
            self.present().into_iter().try_for_each(|number| match self.view(number)?.owner(slot) {
                Some(owner) if owner == self.ids[node] => Ok(()),
                other => Err(format!("node {number} says that {other:?} has slot {slot}")),
            })
        });
    }

    fn number(&self, id: &str) -> usize {
        self.ids.iter().position(|known| known == id).expect("the rig knows all nodes")
    }

    fn view(&self, number: usize) -> Result<View, String> {
        Ok(View::parse(&self.ask(number, &["CLUSTER", "NODES"])?))
    }

    /// A node that takes a copy over from its primary refuses nearly everything meanwhile.
    fn ask(&self, number: usize, words: &[&str]) -> Result<String, String> {
        let reply = self.nodes[number].try_command(words);
        let reply = reply.map_err(|error| format!("node {number}: {error}"))?;
        match reply.error() {
            Some(text) => Err(format!("node {number}: {text}")),
            None => Ok(reply.text()),
        }
    }

    fn check_state(&self, number: usize) -> Result<(), String> {
        let info = self.ask(number, &["CLUSTER", "INFO"])?;
        let is_ok = info.lines().any(|line| line == "cluster_state:ok");
        if is_ok { Ok(()) } else { Err(format!("the cluster is not ok for node {number}: {info}")) }
    }

    /// A replica has its primary, a primary has its replicas.
    fn check_link(&self, number: usize) -> Result<(), String> {
        let info = self.nodes[number].info_all("replication");
        let is_copy = |(name, _): &(&String, &String)| {
            name.strip_prefix("slave").is_some_and(|rest| rest.parse::<u8>().is_ok())
        };
        let mut copies = info.iter().filter(is_copy);
        let is_linked = match info.get("master_link_status") {
            Some(status) => status == "up",
            None => copies.all(|(_, value)| value.contains("state=online")),
        };
        if is_linked { Ok(()) } else { Err(format!("node {number} is not in sync: {info:?}")) }
    }

    /// All are known and well, and those that copy are known to; what the first node says of
    /// roles, all say.
    fn check_view(&self, number: usize) -> Result<(), String> {
        let (first, view) = (self.view(0)?, self.view(number)?);
        for id in &self.ids {
            let (one, other) = (first.get(id), view.get(id));
            let roles = [one, other].map(|seen| seen.map(|seen| (seen.is_primary, &seen.copies)));
            if !other.is_some_and(|seen| seen.is_well) || roles[0] != roles[1] {
                return Err(format!("node {number} sees {other:?}, node 0 sees {one:?}"));
            }
        }
        Ok(())
    }

    /// Each primary gets an equal part of the slots.
    fn give_slots(&self, primaries: usize) {
        for (number, node) in self.nodes.iter().enumerate() {
            // Nodes with the same epoch would first have to agree which one changes it.
            node.must(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
        }
        let bound = |part: usize| usize::from(SLOTS) * part / primaries;
        for (part, node) in self.nodes[..primaries].iter().enumerate() {
            let (first, last) = (bound(part).to_string(), (bound(part + 1) - 1).to_string());
            node.must(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
        }
    }

    /// Each meets each: faster than to wait until the word has spread.
    fn meet(&self) {
        for (number, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[number + 1..] {
                let (host, port) = (other.host(), other.port().to_string());
                node.must(&["CLUSTER", "MEET", &host, &port]);
            }
        }
        until("nodes that know each other", TIMEOUT, || {
            (0..self.nodes.len()).try_for_each(|number| {
                let view = self.view(number)?;
                let knows = |id: &String| view.get(id).is_some_and(|seen| seen.is_well);
                if self.ids.iter().all(knows) { Ok(()) } else { Err(format!("{view:?}")) }
            })
        });
    }
}

/// The same, as a node of a cluster.
pub(crate) fn as_node(mut config: RedisConfig) -> RedisConfig {
    config.cluster = true;
    config.extra.push(format!("cluster-node-timeout {}", NODE_TIMEOUT.as_millis()));
    config
}
