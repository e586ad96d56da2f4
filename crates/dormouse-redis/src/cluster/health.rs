//! Health checks: whether Redis answers at all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dormouse_core::error::Error;
use redis::FromRedisValue;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::ClusterClient;
use super::check::errors;
use super::info::Info;
use super::node::Node;
use super::topology::Topology;
use crate::clock;

/// A result is good for this long, so that frequent checks cost Redis little.
const RESULT_TTL: Duration = Duration::from_secs(1);
const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// The last result, and when it was found. Concurrent checks wait for the same probe.
#[derive(Default)]
pub(super) struct HealthProbe(Mutex<Option<(Instant, Result<(), Error>)>>);

impl ClusterClient {
    /// Whether a primary answers and takes work. One is enough: requests to the others are answered
    /// `unavailable`, and taking this server out of service would not help them.
    pub(crate) async fn check_health(&self) -> Result<(), Error> {
        let mut last = self.inner.health.0.lock().await;
        if let Some((at, found)) = &*last
            && at.elapsed() < RESULT_TTL
        {
            return found.clone();
        }
        let found = probe(&self.inner.topology).await;
        let was_well = last.as_ref().is_none_or(|(_, found)| found.is_ok());
        match &found {
            Err(why) if was_well => tracing::warn!("redis: {}", why.text),
            Ok(()) if !was_well => tracing::info!("redis: answers again"),
            _ => {}
        }
        // Readiness is public, so the address of Redis appears only in the log.
        let redacted =
            |_| Error::unavailable("Redis cannot be reached, or takes no work; the log says why");
        let found = found.map_err(redacted);
        *last = Some((clock::instant(), found.clone()));
        found
    }
}

async fn probe(topology: &Arc<Topology>) -> Result<(), Error> {
    let mut pings = JoinSet::new();
    for node in topology.map().primaries() {
        pings.spawn(ping(Arc::clone(topology), node));
    }
    let mut why = Error::unavailable("no primary is known");
    while let Some(answer) = pings.join_next().await {
        match answer {
            Ok(Ok(())) => {
                // The others still learn how their nodes are.
                pings.detach_all();
                return Ok(());
            }
            Ok(Err(error)) => why = error,
            // Cancelled: the runtime is shutting down.
            Err(_) => {}
        }
    }
    topology.refresh_soon();
    Err(why)
}

async fn ping(topology: Arc<Topology>, node: Arc<Node>) -> Result<(), Error> {
    let address = &node.address;
    let asked = async {
        node.query(&redis::cmd("PING")).await?;
        // A node answers PING also while the cluster is down and refuses all work.
        if topology.is_cluster {
            let mut command = redis::cmd("CLUSTER");
            let text = String::from_redis_value(node.query(command.arg("INFO")).await?)?;
            if Info::parse(&text).text("cluster_state") == "fail" {
                return Ok(false);
            }
        }
        node.refresh_state().await?;
        Ok(true)
    };
    match timeout(PING_TIMEOUT, asked).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(Error::unavailable(format!(
            "Redis at {address} says that the cluster is down: cluster_state is fail; see CLUSTER \
             NODES for the slots without a primary"
        ))),
        Ok(Err(error)) => Err(errors::failure(&topology.opener, address, "PING", &error)),
        Err(_) => Err(Error::unavailable(format!(
            "Redis at {address} does not answer within {} ms",
            PING_TIMEOUT.as_millis()
        ))),
    }
}
