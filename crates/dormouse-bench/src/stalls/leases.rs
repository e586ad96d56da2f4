//! As many leases as there can be, while the store writes checkpoints; and all of them expire in
//! one instant.

use std::time::{Duration, Instant};

use dormouse_core::command::{Command, Reply};
use dormouse_core::limits::RESERVE_MAX;
use dormouse_core::op::{Put, Reserve, SessionId};
use dormouse_core::topic::TopicName;
use serde_json::Value;

use super::stage::{Stage, told};
use crate::Result;
use crate::client::unexpected;
use crate::progress::Progress;

/// Leases of one topic alone would all be in one lane when they expire; and one topic has no more
/// than half of all leases.
const TOPICS: u64 = 8;
const CHECKPOINTS: u64 = 2;
const TTR: Duration = Duration::from_secs(3_600);

/// With rounds, they also expire: so many times.
pub(super) fn run(stage: &Stage, count: u64, rounds: Option<u64>) -> Result<()> {
    let topics = put_all(stage, count)?;
    lease_all(stage, &topics, count, None)?;
    stage.measure("leases_checkpoint", count, || {
        let jobs = stage.pass_checkpoints(CHECKPOINTS)?;
        Ok(told([("checkpoints", Value::from(CHECKPOINTS)), ("filler_jobs", Value::from(jobs))]))
    })?;
    for round in 1..=rounds.unwrap_or(0) {
        if round > 1 {
            lease_all(stage, &topics, count, None)?;
        }
        stage.measure("leases_expired", count, || {
            let expired_at = Instant::now();
            stage.clock.advance(TTR);
            // The other topic may have a lease at any time.
            let are_gone = || Ok(stage.stats(None)?.counts.leased <= 1);
            stage.wait_until("all leases expire", are_gone)?;
            let passed = expired_at.elapsed();
            Ok(told([
                ("round", Value::from(round)),
                ("expired_ms", Value::from(passed.as_secs_f64() * 1e3)),
            ]))
        })?;
    }
    Ok(())
}

/// Puts jobs into as many topics; gives these.
pub(super) fn put_all(stage: &Stage, count: u64) -> Result<Vec<TopicName>> {
    let name = |number| Ok(TopicName::new(&format!("leases-{number}"))?);
    let topics = (0..TOPICS.min(count)).map(name).collect::<Result<Vec<_>>>()?;
    stage.put("put", count, |number, body| {
        let topic = topics[usize::try_from(number % topics.len() as u64)?].clone();
        // A job may expire as often as it likes.
        Ok(Put { attempts_max: Some(0), ..Put::new(topic, body) })
    })?;
    Ok(topics)
}

/// Leases all jobs of these topics, of a session if there is one.
pub(super) fn lease_all(
    stage: &Stage,
    topics: &[TopicName],
    count: u64,
    session: Option<SessionId>,
) -> Result<()> {
    let (client, mut progress) = (stage.client(), Progress::new("lease", count));
    let ttr_ms = Some(i64::try_from(TTR.as_millis())?);
    let mut leased = 0;
    while leased < count {
        let topics = topics.to_vec();
        let reserve = Reserve { topics, max: RESERVE_MAX, wait_ms: 0, ttr_ms, session };
        match client.call(Command::Reserve(reserve))? {
            Reply::Jobs(jobs) if !jobs.is_empty() => leased += jobs.len() as u64,
            other => {
                let asked = format!("a reserve after {leased} of {count} jobs");
                return Err(unexpected(&asked, &other));
            }
        }
        progress.at(leased);
    }
    progress.end(leased);
    Ok(())
}
