//! Reserves that name as many topics as they may, of which one in a hundred has a job.

use std::time::Instant;

use dormouse_core::command::{Command, Reply};
use dormouse_core::limits::RESERVE_TOPICS_MAX;
use dormouse_core::op::Put;
use dormouse_core::topic::TopicName;
use serde_json::Value;

use super::stage::{DELAY, Stage, told};
use crate::Result;
use crate::client::{reserve, unexpected};
use crate::latency::Latencies;

/// One topic in so many has a job that is ready.
const READY_EVERY: u64 = 100;

pub(super) fn run(stage: &Stage, count: u64) -> Result<()> {
    let name = |number| Ok(TopicName::new(&format!("reserve-{number}"))?);
    let topics = (0..count).map(name).collect::<Result<Vec<_>>>()?;
    let delay_ms = Some(2 * i64::try_from(DELAY.as_millis())?);
    stage.put("topics", count, |number, body| {
        let topic = topics[usize::try_from(number)?].clone();
        let delay_ms = if number % READY_EVERY == 0 { None } else { delay_ms };
        Ok(Put { delay_ms, ..Put::new(topic, body) })
    })?;
    // After a flush the heads of all topics have to be read again.
    stage.pass_checkpoints(1)?;
    stage.measure("reserve", count, || {
        let (client, mut times, mut taken) = (stage.client(), Latencies::default(), 0);
        for topics in topics.chunks(RESERVE_TOPICS_MAX) {
            loop {
                let called = Instant::now();
                let reply = client.call(reserve(topics.to_vec(), 1, 0))?;
                times.add(called.elapsed());
                match reply {
                    Reply::Jobs(jobs) if jobs.is_empty() => break,
                    Reply::Jobs(jobs) => {
                        taken += jobs.len() as u64;
                        client.call(Command::Ack(jobs.iter().map(|job| job.token).collect()))?;
                    }
                    other => return Err(unexpected("reserve", &other)),
                }
            }
        }
        if taken != count.div_ceil(READY_EVERY) {
            return Err(format!("{taken} jobs were taken of {count} topics").into());
        }
        Ok(told([
            ("taken", Value::from(taken)),
            ("call_p50_us", Value::from(times.percentile(50))),
            ("call_max_us", Value::from(times.percentile(100))),
        ]))
    })
}
