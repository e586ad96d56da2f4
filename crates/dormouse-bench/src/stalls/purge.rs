//! One purge of a topic with many jobs.

use std::time::Instant;

use dormouse_core::command::{Command, Reply};
use dormouse_core::topic::TopicName;
use serde_json::Value;

use super::stage::{Stage, told};
use crate::Result;
use crate::client::unexpected;

pub(super) fn run(stage: &Stage, count: u64) -> Result<()> {
    let topic = TopicName::new("purged")?;
    stage.put_delayed(&topic, count)?;
    stage.measure("purge", count, || {
        let called = Instant::now();
        match stage.client().call(Command::Purge(topic.clone().into()))? {
            Reply::Count(jobs) if jobs == count => {}
            other => return Err(unexpected(&format!("purge of {count} jobs"), &other)),
        }
        let answered = called.elapsed();
        // The other topic may have a job at any time.
        let left = stage.stats(None)?.counts.waiting;
        if left > 1 {
            return Err(format!("{left} jobs are left after the purge").into());
        }
        Ok(told([("call_ms", Value::from(answered.as_secs_f64() * 1e3))]))
    })
}
