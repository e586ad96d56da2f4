//! Whether Redis answers at all, for those who ask only that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dormouse_core::error::Error;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Link;
use super::check::errors;
use super::node::Node;
use super::topology::Net;
use crate::clock;

/// What was found serves all who ask within this time.
const FRESH: Duration = Duration::from_secs(1);
/// A node that has not answered by now does not.
const SILENCE: Duration = Duration::from_secs(1);

/// What was found last, and when. Who asks meanwhile waits for it.
#[derive(Default)]
pub(super) struct Pulse(Mutex<Option<(Instant, Result<(), Error>)>>);

impl Link {
    /// Whether a primary answers. One is enough: what the others have is told `unavailable`, and
    /// to turn everybody away would help nobody.
    pub(crate) async fn feel_pulse(&self) -> Result<(), Error> {
        let mut last = self.inside.pulse.0.lock().await;
        if let Some((at, found)) = &*last
            && at.elapsed() < FRESH
        {
            return found.clone();
        }
        let found = feel(&self.inside.net).await;
        let was_well = last.as_ref().is_none_or(|(_, found)| found.is_ok());
        match &found {
            Err(why) if was_well => tracing::warn!("redis: {}", why.text),
            Ok(()) if !was_well => tracing::info!("redis: answers again"),
            _ => {}
        }
        // Who asks for readiness shows no token: where Redis is, is for the log.
        let told = |_| Error::unavailable("Redis cannot be reached; the log says why");
        let found = found.map_err(told);
        *last = Some((clock::instant(), found.clone()));
        found
    }
}

async fn feel(net: &Arc<Net>) -> Result<(), Error> {
    let mut asked = JoinSet::new();
    for node in net.map().primaries() {
        asked.spawn(ping(Arc::clone(net), node));
    }
    let mut why = Error::unavailable("no primary is known");
    while let Some(answer) = asked.join_next().await {
        match answer {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => why = error,
            // It was cut off: the runtime is going down.
            Err(_) => {}
        }
    }
    net.refresh_soon();
    Err(why)
}

async fn ping(net: Arc<Net>, node: Arc<Node>) -> Result<(), Error> {
    let address = &node.address;
    match timeout(SILENCE, node.ask(&redis::cmd("PING"))).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(errors::failure(&net.opener, address, "PING", &error)),
        Err(_) => Err(Error::unavailable(format!(
            "Redis at {address} does not answer within {} ms",
            SILENCE.as_millis()
        ))),
    }
}
