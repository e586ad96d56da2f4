//! Jobs that nobody takes die in one instant; where they have a dead topic, each becomes a letter
//! there.

use std::time::{Duration, Instant};

use dormouse_core::command::Command;
use dormouse_core::op::{Put, SetTopic};
use dormouse_core::topic::{Settings, TopicName};
use serde_json::Value;

use super::stage::{DELAY, Stage, told};
use crate::Result;

const SPAN: Duration = Duration::from_secs(60);

pub(super) fn run(stage: &Stage, count: u64, is_into_dead_topic: bool) -> Result<()> {
    let (topic, morgue) = (TopicName::new("late")?, TopicName::new("morgue")?);
    if is_into_dead_topic {
        let settings = Settings { dead_topic: Some(morgue.clone()), ..Settings::default() };
        stage.client().call(Command::from(SetTopic { topic: topic.clone(), settings }))?;
    }
    let delay_ms = Some(i64::try_from(DELAY.as_millis())?);
    let expires_after_ms = Some(i64::try_from(SPAN.as_millis())?);
    stage.put_each("put", count, |_, body| {
        Ok(Put { delay_ms, expires_after_ms, ..Put::new(topic.clone(), body) })
    })?;
    let name = if is_into_dead_topic { "letters" } else { "deadlines" };
    stage.measure(name, count, || {
        let began = Instant::now();
        stage.clock.advance(DELAY + SPAN);
        let are_dead = || {
            let counts = stage.stats(None)?.counts;
            let ended = if is_into_dead_topic { counts.kills } else { counts.dead };
            Ok(ended >= count)
        };
        stage.wait_until("all die", are_dead)?;
        let dead_ms = began.elapsed().as_secs_f64() * 1e3;
        let letters =
            if is_into_dead_topic { stage.stats(Some(&morgue))?.counts.waiting } else { 0 };
        if is_into_dead_topic && letters != count {
            return Err(format!("{letters} letters came of {count} deaths").into());
        }
        Ok(told([("dead_ms", Value::from(dead_ms))]))
    })
}
