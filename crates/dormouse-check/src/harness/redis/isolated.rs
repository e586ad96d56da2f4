//! A cluster whose network can be cut, and places for clients in it.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::process::Command;

use crate::faults::network::{End, Half, Network, enter};
use crate::harness::redis::cluster::{RedisCluster, as_node};
use crate::harness::redis::config::RedisConfig;
use crate::harness::redis::server::RedisServer;

const PRIMARIES: usize = 3;
const NODES: usize = 6;

/// Somebody on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// A node of the cluster.
    Node(usize),
    /// A place for clients.
    Client(usize),
    /// This machine.
    Host,
}

/// Three primaries and three replicas, each in a network namespace, and empty namespaces for
/// clients. Without a cut all reach all, also from this machine.
#[derive(Debug)]
pub struct IsolatedCluster {
    cluster: RedisCluster,
    network: Network,
    /// Those that are cut off.
    aside: Vec<Spot>,
}

impl IsolatedCluster {
    /// Starts it with room for this many clients. Without root there is none, and the test that
    /// asks must leave; the reason is printed.
    pub fn start(clients: usize) -> Option<IsolatedCluster> {
        IsolatedCluster::with(clients, &RedisConfig::default())
    }

    /// Starts it with nodes that are all made so.
    pub fn with(clients: usize, config: &RedisConfig) -> Option<IsolatedCluster> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: network namespaces need root");
            return None;
        }
        let network = Network::new(NODES + clients, clients);
        let node = |number: usize| {
            let (address, network_of) = (network.address(number), Some(network.pid(number)));
            RedisServer::start(as_node(RedisConfig { address, network_of, ..config.clone() }))
        };
        let cluster = RedisCluster::join((0..NODES).map(node).collect(), PRIMARIES);
        Some(IsolatedCluster { cluster, network, aside: Vec::new() })
    }

    /// The cluster. It is asked over unix sockets, so a cut does not matter to the rig.
    pub fn cluster(&self) -> &RedisCluster {
        &self.cluster
    }

    /// The cluster, to kill nodes of it.
    pub fn cluster_mut(&mut self) -> &mut RedisCluster {
        &mut self.cluster
    }

    /// Cuts these off from all others, but not from one another. Nothing is closed: packets are
    /// lost. A member that was cut off before stays so, on the same side.
    pub fn cut(&mut self, spots: &[Spot]) {
        for spot in spots {
            self.network.plug(end(*spot), Half::Aside);
            if let Spot::Node(number) = spot {
                self.cluster.set_away(*number, true);
            }
        }
        self.aside.extend_from_slice(spots);
    }

    /// Puts all together again.
    pub fn heal(&mut self) {
        for spot in std::mem::take(&mut self.aside) {
            self.network.plug(end(spot), Half::Main);
            if let Spot::Node(number) = spot {
                self.cluster.set_away(number, false);
            }
        }
    }

    /// All processes of the rig: the servers, and those that hold namespaces.
    pub fn processes(&self) -> Vec<u32> {
        let servers = self.cluster.nodes().iter().filter(|node| node.is_running());
        servers.map(RedisServer::pid).chain(self.network.holders()).collect()
    }

    /// The network links of this machine that belong to the rig.
    pub fn cables(&self) -> &[String] {
        self.network.cables()
    }

    /// The address at which this machine reaches what listens in a client's place, even while that
    /// is cut off.
    pub fn near_address(&self, client: usize) -> Ipv4Addr {
        self.network.near_address(NODES + client)
    }

    /// A command that runs in the network of a spot. The child is the program itself, so a kill
    /// hits it; the caller has to do it.
    pub fn command_in(&self, spot: Spot, program: impl AsRef<OsStr>) -> Command {
        match end(spot) {
            End::Host => Command::new(program),
            End::Member(number) => {
                let mut command = enter(self.network.pid(number));
                command.arg(program);
                command
            }
        }
    }

    /// Runs on a new thread in the network of a spot: connections made there, also by threads
    /// begun there, belong to it. A runtime made there is inside with all its threads.
    pub fn run_in<T: Send>(&self, spot: Spot, work: impl FnOnce() -> T + Send) -> T {
        match end(spot) {
            End::Host => work(),
            End::Member(number) => self.network.run_in(number, work),
        }
    }
}

/// Nodes come first, then clients.
fn end(spot: Spot) -> End {
    match spot {
        Spot::Node(number) => End::Member(number),
        Spot::Client(number) => End::Member(NODES + number),
        Spot::Host => End::Host,
    }
}
