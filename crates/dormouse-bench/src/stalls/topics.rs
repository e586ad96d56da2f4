//! Very many topics live while the store writes checkpoints, which name all of them.

use dormouse_core::op::Put;
use dormouse_core::topic::TopicName;
use serde_json::Value;

use super::stage::{DELAY, Stage, told};
use crate::Result;

const CHECKPOINTS: u64 = 2;

pub(super) fn run(stage: &Stage, count: u64) -> Result<()> {
    let delay_ms = Some(i64::try_from(DELAY.as_millis())?);
    stage.put("topics", count, |number, body| {
        let topic = TopicName::new(&format!("topic-{number}"))?;
        Ok(Put { delay_ms, ..Put::new(topic, body) })
    })?;
    let alive = stage.stats(None)?.topics;
    if alive < count {
        return Err(format!("{alive} of {count} topics are alive").into());
    }
    stage.measure("topics", count, || {
        let jobs = stage.pass_checkpoints(CHECKPOINTS)?;
        Ok(told([("checkpoints", Value::from(CHECKPOINTS)), ("filler_jobs", Value::from(jobs))]))
    })
}
