//! Idle: the backlog pending, a consumer waiting, nothing due.

use std::time::Duration;

use dormouse_core::topic::TopicName;
use dormouse_disk::engine::{Engine, Options};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::child::{self, Task};
use crate::client::{Client, reserve};
use crate::{progress, rss};

const TIME: Duration = Duration::from_secs(10);
const WAIT_MS: i64 = 60_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct IdleFigures {
    pub(crate) idle_cpu_percent: f64,
}

pub(crate) fn run(task: &Task) -> Result<()> {
    let engine = Engine::open(&task.data, Options::default())?;
    rss::wait_until_quiet()?;
    progress::note("idle: a consumer waits for 10 s");
    let client = Client::new(&engine);
    let mut topics = vec![TopicName::new("empty")?];
    if !task.plan.ready {
        topics.extend(task.plan.topic_names()?.into_iter().take(1));
    }
    client.send(reserve(topics, 1, WAIT_MS))?;
    let idle_cpu_percent = rss::cpu_percent_over(TIME);
    if client.receive_now()?.is_some() {
        return Err("the waiting consumer was answered although nothing was due".into());
    }
    child::report(&IdleFigures { idle_cpu_percent })?;
    Ok(engine.close()?)
}
