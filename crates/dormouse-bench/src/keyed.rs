//! Puts on keys that are taken must answer by their mode.

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::op::{OnConflict, Put, PutOutcome};
use dormouse_disk::engine::{Engine, Options};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::child::{self, Task};
use crate::client::{Client, unexpected};
use crate::plan::{Noise, SPREAD_MS, key};
use crate::progress::Progress;

const CHECKED: u64 = 3_000;
const MODES: [OnConflict; 3] = [OnConflict::Keep, OnConflict::Reject, OnConflict::Replace];

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KeyedFigures {
    /// Puts with a known key, all answered as their mode says.
    pub(crate) keys_checked: u64,
}

pub(crate) fn run(task: &Task) -> Result<()> {
    let engine = Engine::open(&task.data, Options::default())?;
    let client = Client::new(&engine);
    let mut noise = Noise::new(task.plan.body, task.plan.seed + 1);
    let (topics, shuffled) = (task.plan.topic_names()?, task.plan.shuffled());
    let mut progress = Progress::new("keyed", CHECKED);
    for index in 0..CHECKED.min(task.plan.jobs) {
        // From the far end: the near one will be cancelled.
        let number = shuffled.at(task.plan.jobs - 1 - index);
        let topic = topics[task.plan.topic_of(number)].clone();
        let mode = MODES[(index % 3) as usize];
        let put = Put {
            key: Some(key(number)),
            on_conflict: mode,
            delay_ms: Some((SPREAD_MS / 2) as i64),
            ..Put::new(topic, noise.body(number))
        };
        check(task.first_id + number, mode, &client.call(Command::Put(vec![put]))?)?;
        progress.at(index);
    }
    progress.end(CHECKED);
    child::report(&KeyedFigures { keys_checked: CHECKED.min(task.plan.jobs) })?;
    Ok(engine.close()?)
}

fn check(id: u64, mode: OnConflict, reply: &Reply) -> Result<()> {
    let Reply::Put(items) = reply else { return Err(unexpected("put", reply)) };
    let is_right = match (mode, items.first()) {
        (OnConflict::Keep, Some(Ok(put))) => put.outcome == PutOutcome::Duplicate && put.id.0 == id,
        (OnConflict::Replace, Some(Ok(put))) => {
            put.outcome == PutOutcome::Replaced && put.id.0 == id
        }
        (OnConflict::Reject, Some(Err(error))) => {
            error.code == Code::Conflict && error.job.is_some_and(|(job, _)| job.0 == id)
        }
        _ => false,
    };
    if is_right { Ok(()) } else { Err(unexpected(&format!("put ({mode:?}) on job {id}"), reply)) }
}
