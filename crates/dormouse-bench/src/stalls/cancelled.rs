//! Jobs that were cancelled long ago come due, and a consumer waits for the one behind them.

use std::thread;
use std::time::{Duration, Instant};

use dormouse_core::command::{Command, Reply};
use dormouse_core::op::Put;
use dormouse_core::topic::TopicName;
use serde_json::Value;

use super::stage::{DELAY, Stage, told};
use crate::Result;
use crate::client::{reserve, unexpected};

/// The consumer begins to wait so long before, and may wait a little longer.
const BEFORE: Duration = Duration::from_secs(10);
const WAIT_MS: i64 = 60_000;

pub(super) fn run(stage: &Stage, count: u64) -> Result<()> {
    let topic = TopicName::new("cancelled")?;
    let first = stage.put_delayed(&topic, count)?;
    stage.cancel(first, count)?;
    let delay_ms = Some(i64::try_from(DELAY.as_millis())? + 1);
    let live = Put { delay_ms, ..Put::new(topic.clone(), "live") };
    stage.client().call(Command::Put(vec![live]))?;
    stage.clock.advance(DELAY - BEFORE);
    stage.measure("cancelled", count, || {
        let passed = thread::scope(|scope| {
            let consumer = scope.spawn(|| consume(stage, &topic));
            let waits = || Ok(stage.stats(Some(&topic))?.waiters > 0 || consumer.is_finished());
            stage.wait_until("a consumer waits", waits)?;
            let due_at = Instant::now();
            stage.clock.advance(BEFORE + Duration::from_secs(1));
            consumer.join().unwrap_or_else(|_| Err("the consumer panicked".into()))?;
            Result::Ok(due_at.elapsed())
        })?;
        Ok(told([("passed_ms", Value::from(passed.as_secs_f64() * 1e3))]))
    })
}

fn consume(stage: &Stage, topic: &TopicName) -> Result<()> {
    match stage.client().call(reserve(vec![topic.clone()], 1, WAIT_MS))? {
        Reply::Jobs(jobs) if jobs.len() == 1 && jobs[0].body == "live" => Ok(()),
        other => Err(unexpected("the reserve of the live job", &other)),
    }
}
