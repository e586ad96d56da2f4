//! One topic with very many live priorities: all questions about it, then all its jobs are due and
//! a consumer takes them.

use std::time::{Duration, Instant};

use dormouse_core::command::{Command, Reply};
use dormouse_core::job::State;
use dormouse_core::op::{Forecast, Kick, List, ListRange, Peek, Put};
use dormouse_core::topic::TopicName;
use dormouse_disk::clock::TimeSource;
use serde_json::{Map, Value};

use super::stage::{DELAY, Stage, told};
use crate::Result;
use crate::client::unexpected;

const STEPS: u64 = 100;

pub(super) fn run(stage: &Stage, count: u64) -> Result<()> {
    let topic = TopicName::new("priorities")?;
    let delay_ms = Some(i64::try_from(DELAY.as_millis())?);
    // Twice: each lane is in several runs.
    for _ in 0..2 {
        stage.put("priorities", count, |number, body| {
            let priority = Some(u32::try_from(number)?);
            Ok(Put { delay_ms, priority, ..Put::new(topic.clone(), body) })
        })?;
        stage.pass_checkpoints(1)?;
    }
    stage.measure("priorities_asked", count, || ask(stage, &topic, 2 * count))?;
    stage.measure("priorities_due", count, || {
        let due_at = Instant::now();
        stage.clock.advance(DELAY + Duration::from_secs(1));
        stage.take_all(&[vec![topic.clone()]], 2 * count)?;
        Ok(told([("taken_ms", Value::from(due_at.elapsed().as_secs_f64() * 1e3))]))
    })
}

/// Each question once; gives how long its answer took.
fn ask(stage: &Stage, topic: &TopicName, jobs: u64) -> Result<Map<String, Value>> {
    let (client, mut figures) = (stage.client(), Map::new());
    let from_ms = stage.clock.read().wall_ms;
    let step_ms = (2 * DELAY.as_millis() as u64).div_ceil(STEPS);
    let forecast =
        Forecast { topic: topic.clone(), from_ms, to_ms: from_ms + STEPS * step_ms, step_ms };
    let (state, limit) = (State::Delayed, 1_000);
    let list =
        List { topic: topic.clone(), state, cursor: None, limit, range: ListRange::default() };
    let questions = [
        ("forecast_ms", Command::Forecast(forecast)),
        ("list_ms", Command::List(list)),
        ("peek_delayed_ms", Command::Peek(Peek { topic: topic.clone(), state })),
        ("peek_ready_ms", Command::Peek(Peek { topic: topic.clone(), state: State::Ready })),
        ("kick_ms", Command::Kick(Kick { topic: topic.clone(), max: 1_000 })),
    ];
    let called = Instant::now();
    let stats = stage.stats(Some(topic))?;
    figures.insert("stats_ms".to_owned(), Value::from(called.elapsed().as_secs_f64() * 1e3));
    if stats.delayed != jobs {
        return Err(format!("{} of {jobs} jobs are delayed", stats.delayed).into());
    }
    for (name, question) in questions {
        let called = Instant::now();
        match client.call(question)? {
            Reply::Forecast(counts) if counts.iter().sum::<u64>() == jobs => {}
            Reply::Page(page) if page.jobs.len() == limit => {}
            Reply::View(_) | Reply::Count(1_000) => {}
            other => return Err(unexpected(name, &other)),
        }
        figures.insert(name.to_owned(), Value::from(called.elapsed().as_secs_f64() * 1e3));
    }
    Ok(figures)
}
