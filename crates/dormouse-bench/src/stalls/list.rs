//! A list and a peek of delayed jobs must pass many cancelled ones before the first that lives.

use std::time::Instant;

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::State;
use dormouse_core::op::{List, ListRange, Peek, Put};
use dormouse_core::topic::TopicName;
use serde_json::Value;

use super::stage::{DELAY, Stage, told};
use crate::Result;
use crate::client::{Client, unexpected};
use crate::latency::Latencies;

const CALLS: usize = 5;
const PAGE: usize = 100;

pub(super) fn run(stage: &Stage, count: u64) -> Result<()> {
    let topic = TopicName::new("listed")?;
    let first = stage.put_delayed(&topic, count)?;
    stage.cancel(first, count)?;
    let delay_ms = Some(i64::try_from(DELAY.as_millis())? + 1);
    let live = Put { delay_ms, ..Put::new(topic.clone(), "live") };
    stage.client().call(Command::Put(vec![live]))?;
    stage.measure("list", count, || {
        let mut look = Look { client: stage.client(), busy: 0 };
        let (mut lists, mut peeks) = (Latencies::default(), Latencies::default());
        for _ in 0..CALLS {
            let called = Instant::now();
            look.list(&topic)?;
            lists.add(called.elapsed());
            let called = Instant::now();
            look.peek(&topic)?;
            peeks.add(called.elapsed());
        }
        Ok(told([
            ("list_p50_us", Value::from(lists.percentile(50))),
            ("list_max_us", Value::from(lists.percentile(100))),
            ("peek_p50_us", Value::from(peeks.percentile(50))),
            ("peek_max_us", Value::from(peeks.percentile(100))),
            ("busy_answers", Value::from(look.busy)),
        ]))
    })
}

/// Looks for the live job as a client does that must be shown it.
struct Look {
    client: Client,
    /// How often the engine asked to try again.
    busy: u64,
}

impl Look {
    /// Page by page until the live job is there.
    fn list(&mut self, topic: &TopicName) -> Result<()> {
        let mut cursor = None;
        loop {
            let (topic, state) = (topic.clone(), State::Delayed);
            match self.ask(&Command::List(List {
                topic,
                state,
                cursor,
                limit: PAGE,
                range: ListRange::default(),
            }))? {
                Reply::Page(page) if page.jobs.len() == 1 => return Ok(()),
                Reply::Page(page) if page.jobs.is_empty() && page.cursor.is_some() => {
                    cursor = page.cursor;
                }
                other => return Err(unexpected("the list of the live job", &other)),
            }
        }
    }

    fn peek(&mut self, topic: &TopicName) -> Result<()> {
        match self.ask(&Command::Peek(Peek { topic: topic.clone(), state: State::Delayed }))? {
            Reply::View(Some(_)) => Ok(()),
            other => Err(unexpected("the peek of the live job", &other)),
        }
    }

    /// Asks again as long as the engine is busy.
    fn ask(&mut self, command: &Command) -> Result<Reply> {
        loop {
            match self.client.call(command.clone()) {
                Err(error) if is_busy(&*error) => self.busy += 1,
                other => return other,
            }
        }
    }
}

fn is_busy(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<Error>().is_some_and(|error| error.code == Code::Busy)
}
