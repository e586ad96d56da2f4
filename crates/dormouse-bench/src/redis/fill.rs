//! Many jobs, put as fast as the backend takes them.

use dormouse_core::command::{Command, Reply};
use dormouse_core::job::JobId;
use dormouse_core::op::Put;
use dormouse_core::topic::TopicName;

use crate::Result;
use crate::client::{Client, unexpected};
use crate::plan::Noise;
use crate::progress::Progress;

const BATCH: u64 = 1_000;
const IN_FLIGHT: u64 = 4;

/// Puts `jobs` jobs, each due at `due_ms(number)`; returns their ids.
pub(super) fn fill(
    client: &Client,
    topic: &TopicName,
    jobs: u64,
    noise: &mut Noise,
    mut due_ms: impl FnMut() -> u64,
) -> Result<Vec<JobId>> {
    let mut progress = Progress::new("fill", jobs);
    let mut ids = Vec::with_capacity(usize::try_from(jobs).unwrap_or(0));
    let (mut sent, mut under_way) = (0, 0);
    while (ids.len() as u64) < jobs {
        while sent < jobs && under_way < IN_FLIGHT {
            let end = jobs.min(sent + BATCH);
            let put = |number| Put {
                at_ms: i64::try_from(due_ms()).ok(),
                ..Put::new(topic.clone(), noise.body(number))
            };
            client.send(Command::Put((sent..end).map(put).collect()))?;
            sent = end;
            under_way += 1;
        }
        take_ids(&client.receive()?.reply, &mut ids)?;
        under_way -= 1;
        progress.at(ids.len() as u64);
    }
    progress.end(jobs);
    Ok(ids)
}

fn take_ids(reply: &Reply, ids: &mut Vec<JobId>) -> Result<()> {
    let Reply::Put(items) = reply else { return Err(unexpected("put", reply)) };
    for item in items {
        ids.push(item.as_ref().map_err(|error| error.clone())?.id);
    }
    Ok(())
}
