//! All delayed jobs of a topic are kicked, as fast as the calls are answered.

use dormouse_core::command::{Command, Reply};
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::Kick;
use dormouse_core::topic::TopicName;
use serde_json::Value;

use std::time::Instant;

use super::stage::{Stage, told};
use crate::Result;
use crate::client::unexpected;
use crate::latency::Latencies;

pub(super) fn run(stage: &Stage, count: u64) -> Result<()> {
    let topic = TopicName::new("kicked")?;
    stage.put_delayed(&topic, count)?;
    stage.measure("kick", count, || {
        let (client, mut times, mut kicked) = (stage.client(), Latencies::default(), 0);
        while kicked < count {
            let called = Instant::now();
            let kick = Kick { topic: topic.clone(), max: BATCH_MAX };
            match client.call(Command::Kick(kick))? {
                Reply::Count(jobs) if jobs > 0 => kicked += jobs,
                other => {
                    return Err(unexpected(&format!("kick after {kicked} of {count}"), &other));
                }
            }
            times.add(called.elapsed());
        }
        Ok(told([
            ("calls", Value::from(times.len())),
            ("call_p50_us", Value::from(times.percentile(50))),
            ("call_max_us", Value::from(times.percentile(100))),
        ]))
    })
}
