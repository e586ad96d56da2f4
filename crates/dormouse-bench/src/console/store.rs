//! The store that is looked at: most jobs come due within a month, some are ready, some are dead.

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::JobId;
use dormouse_core::op::{Kill, KillTarget, Put, Target};
use dormouse_core::topic::TopicName;
use dormouse_disk::engine::{Durability, Engine, Options};

use super::viewer::topic_name;
use crate::Result;
use crate::client::{Client, unexpected};
use crate::progress::Progress;

/// Jobs of a request, and requests on their way.
const BATCH: u64 = 500;
const IN_FLIGHT: usize = 8;
/// Bytes of a body.
const BODY: usize = 100;
const MONTH_MS: u64 = 30 * 86_400_000;
/// One job in so many is ready.
const READY_EVERY: u64 = 50;
/// Dead jobs of the first topic, and the errors that they died of.
const DEAD: u64 = 5_000;
const ERRORS: u64 = 20;

/// Fills a new store, and tells how long it took.
pub(super) fn fill(dir: &Path, jobs: u64, topics: u64) -> Result<Duration> {
    let durability = Durability::Relaxed { ms: 50 };
    let engine = Engine::open(dir, Options { durability, ..Options::default() })?;
    let client = Client::new(&engine);
    let names = (0..topics).map(|number| TopicName::new(&topic_name(number)));
    let names = names.collect::<std::result::Result<Vec<TopicName>, _>>()?;
    let (began, mut progress) = (Instant::now(), Progress::new("console: fill", jobs));
    let (body, mut open) = (Bytes::from(vec![b'x'; BODY]), 0);
    for from in (0..jobs).step_by(usize::try_from(BATCH)?) {
        let put = |number: u64| {
            // A tenth of all goes to the first topic, the others go to all in turn.
            let turn = number / 10 * 9 + number % 10;
            let topic = if number % 10 == 0 { 0 } else { turn % topics };
            let name = names.get(usize::try_from(topic).unwrap_or(0)).cloned();
            let delay_ms = if number % READY_EVERY == 1 { 0 } else { spread(number) % MONTH_MS };
            let delay_ms = i64::try_from(delay_ms).ok();
            name.map(|name| Put { delay_ms, ..Put::new(name, body.clone()) })
        };
        client.send(Command::Put((from..jobs.min(from + BATCH)).filter_map(put).collect()))?;
        open += 1;
        if open > IN_FLIGHT {
            check(&client.receive()?.reply)?;
            open -= 1;
        }
        progress.at(from);
    }
    for _ in 0..open {
        check(&client.receive()?.reply)?;
    }
    kill_some(&client, &names)?;
    progress.end(jobs);
    engine.close()?;
    Ok(began.elapsed())
}

/// Numbers that follow each other come far apart.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

fn kill_some(client: &Client, names: &[TopicName]) -> Result<()> {
    let Some(topic) = names.first() else { return Ok(()) };
    for from in (0..DEAD).step_by(usize::try_from(BATCH)?) {
        let puts = (0..BATCH).map(|_| Put::new(topic.clone(), "{}")).collect();
        let ids = check(&client.call(Command::Put(puts))?)?;
        let kill = |(number, id): (u64, JobId)| {
            let error = format!("connection to host {} refused", number % ERRORS);
            let target = KillTarget::Resting(Target::Id(id));
            Kill { target, error: Some(Bytes::from(error)), priority: None }
        };
        client.call(Command::Kill((from..).zip(ids).map(kill).collect()))?;
    }
    Ok(())
}

/// The ids of jobs. One that was refused would make the figures worthless.
fn check(reply: &Reply) -> Result<Vec<JobId>> {
    let Reply::Put(items) = reply else { return Err(unexpected("put", reply)) };
    let ids = items.iter().map(|item| item.as_ref().map(|put| put.id));
    ids.collect::<std::result::Result<_, _>>().map_err(|error| error.to_string().into())
}
