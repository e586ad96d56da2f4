//! The start-up check: refuses a Redis that cannot serve, and warns of what it does not guarantee.

pub(super) mod errors;
mod server;
mod trial;

use std::sync::Arc;

use dormouse_core::error::Error;
use redis::FromRedisValue;

use super::info::Info;
use super::meters::Meters;
use super::node::Node;
use super::opener::Opener;
use super::sentinel::Sentinels;
use super::slot::SLOTS;
use super::slot_map;
use super::topology::Topology;

/// The result of the start-up check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Findings {
    /// The oldest version among the primaries.
    pub(crate) version: String,
    pub(crate) is_cluster: bool,
    pub(crate) primaries: usize,
    /// Connected replicas of the primary with the fewest.
    pub(crate) replicas: u64,
    /// The weakest `appendfsync` among the primaries; `None` if the AOF is off or the setting could
    /// not be read.
    pub(crate) appendfsync: Option<String>,
    /// Settings that work, but weaken durability.
    pub(crate) warnings: Vec<String>,
}

/// Connects, and refuses an installation that cannot serve.
pub(super) async fn check(
    opener: Arc<Opener>,
    replicas: u32,
) -> Result<(Arc<Topology>, Findings), Error> {
    let meters = Arc::new(Meters::default());
    let sentinels = Sentinels::new(&opener, &meters);
    let (first, info) = match &sentinels {
        Some(sentinels) => named_primary(sentinels, &opener, &meters).await?,
        None => first_reachable(&opener, &meters).await?,
    };
    server::check_version(&first.address, &info)?;
    let is_cluster = info.is_set("cluster_enabled");
    if is_cluster && sentinels.is_some() {
        return Err(Error::invalid(format!(
            "Redis at {}, which the sentinels name, is part of a cluster, which needs no \
             sentinels: name its nodes by redis://",
            first.address
        )));
    }
    let first_node = Arc::clone(&first);
    let topology = Topology::new(Arc::clone(&opener), meters, first_node, is_cluster, sentinels);
    if is_cluster {
        load_slot_map(&topology, &first).await?;
    } else {
        check_standalone(&opener, &first, &info)?;
    }
    let findings = check_primaries(&topology, replicas).await?;
    Ok((Arc::new(topology), findings))
}

/// The first seed node that answers. One that refuses ends the search: the others would refuse too.
async fn first_reachable(
    opener: &Arc<Opener>,
    meters: &Arc<Meters>,
) -> Result<(Arc<Node>, Info), Error> {
    let mut failure = None;
    for address in &opener.url.seeds {
        let node = Arc::new(Node::new(address.clone(), opener, meters));
        match Info::of(&node).await {
            Ok(info) => return Ok((node, info)),
            Err(error) => failure = Some(errors::failure(opener, address, "INFO", &error)),
        }
        if failure.as_ref().is_some_and(|error| !error.code.is_retryable()) {
            break;
        }
    }
    Err(failure.unwrap_or_else(|| Error::invalid("the URL of Redis names no host")))
}

/// The primary that the sentinels name.
async fn named_primary(
    sentinels: &Sentinels,
    opener: &Arc<Opener>,
    meters: &Arc<Meters>,
) -> Result<(Arc<Node>, Info), Error> {
    let claim = sentinels.claim().await?;
    let node = Arc::new(Node::new(claim.primary.clone(), opener, meters));
    let info = sentinels.confirm(&claim, &node).await?;
    Ok((node, info))
}

fn check_standalone(opener: &Opener, node: &Node, info: &Info) -> Result<(), Error> {
    let (count, address) = (opener.url.seeds.len(), &node.address);
    if count > 1 && opener.url.service.is_none() {
        return Err(Error::invalid(format!(
            "the URL names {count} nodes, but Redis at {address} is not part of a cluster: \
             name one"
        )));
    }
    server::check_role(address, info)
}

/// Loads the slot map; every slot must have a primary.
async fn load_slot_map(topology: &Topology, first: &Arc<Node>) -> Result<(), Error> {
    let address = &first.address;
    let failed = |what: &str, error| errors::failure(&topology.opener, address, what, &error);
    let mut command = redis::cmd("CLUSTER");
    let reply = first.query(command.arg("INFO")).await.map_err(|e| failed("CLUSTER INFO", e))?;
    let state = String::from_redis_value(reply).map(|text| Info::parse(&text));
    let state = state.map_err(|error| failed("CLUSTER INFO", error.into()))?;
    let mut command = redis::cmd("CLUSTER");
    let reply = first.query(command.arg("SLOTS")).await.map_err(|e| failed("CLUSTER SLOTS", e))?;
    let ranges = slot_map::ranges(&reply, address).ok_or_else(|| {
        Error::unavailable(format!("Redis at {address} answers CLUSTER SLOTS in an unknown form"))
    })?;
    topology.install(&ranges);
    let uncovered = topology.map().uncovered();
    if uncovered > 0 {
        return Err(Error::unavailable(format!(
            "{uncovered} of {SLOTS} slots of the cluster have no primary, as {address} sees it: \
             see `redis-cli --cluster check {address}`"
        )));
    }
    match state.text("cluster_state") {
        "ok" => Ok(()),
        state => Err(Error::unavailable(format!(
            "the state of the cluster is `{state}`, not `ok`, as {address} sees it: \
             see `redis-cli --cluster check {address}`"
        ))),
    }
}

async fn check_primaries(topology: &Topology, replicas: u32) -> Result<Findings, Error> {
    let map = topology.map();
    let primaries = map.primaries();
    let mut findings = Findings {
        version: String::new(),
        is_cluster: topology.is_cluster,
        primaries: primaries.len(),
        replicas: u64::MAX,
        appendfsync: Some("always".into()),
        warnings: Vec::new(),
    };
    for node in &primaries {
        let info = Info::of(node).await;
        let info =
            info.map_err(|e| errors::failure(&topology.opener, &node.address, "INFO", &e))?;
        server::check(&node.address, &info, replicas, &mut findings)?;
        trial::check(topology, node, replicas, &mut findings).await?;
        server::check_sync(node, &info, &mut findings).await;
    }
    Ok(findings)
}
