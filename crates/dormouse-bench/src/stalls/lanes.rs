//! Very many lanes, of many topics and priorities, come due in one instant, and consumers take
//! their jobs.

use std::time::{Duration, Instant};

use dormouse_core::op::Put;
use dormouse_core::topic::TopicName;
use serde_json::Value;

use super::stage::{DELAY, Stage, told};
use crate::Result;

/// Lanes of one topic.
const PRIORITIES: u64 = 100;
/// Topics of one reserve.
const TOPICS: usize = 100;

pub(super) fn run(stage: &Stage, count: u64) -> Result<()> {
    let name = |number| Ok(TopicName::new(&format!("lanes-{number}"))?);
    let topics = (0..count.div_ceil(PRIORITIES)).map(name).collect::<Result<Vec<_>>>()?;
    let delay_ms = Some(i64::try_from(DELAY.as_millis())?);
    stage.put("lanes", count, |number, body| {
        let topic = topics[usize::try_from(number / PRIORITIES)?].clone();
        let priority = Some(u32::try_from(number % PRIORITIES)?);
        Ok(Put { delay_ms, priority, ..Put::new(topic, body) })
    })?;
    stage.pass_checkpoints(1)?;
    let groups: Vec<Vec<TopicName>> = topics.chunks(TOPICS).map(<[TopicName]>::to_vec).collect();
    stage.measure("lanes", count, || {
        let due_at = Instant::now();
        stage.clock.advance(DELAY + Duration::from_secs(1));
        stage.take_all(&groups, count)?;
        Ok(told([
            ("topics", Value::from(topics.len())),
            ("taken_ms", Value::from(due_at.elapsed().as_secs_f64() * 1e3)),
        ]))
    })
}
