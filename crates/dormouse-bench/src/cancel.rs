//! Cancels of random jobs of the whole backlog, read from the disk: by id, or by key.

use std::collections::VecDeque;
use std::time::Instant;

use dormouse_core::command::{Command, Reply};
use dormouse_core::job::JobId;
use dormouse_core::op::{Cancel, Target};
use dormouse_core::topic::TopicName;
use dormouse_disk::engine::{Engine, Options};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::child::{self, Task};
use crate::client::{Client, unexpected};
use crate::latency::Latencies;
use crate::plan::{Shuffled, key};
use crate::progress::Progress;
use crate::raw::SyncProbe;
use crate::rss;

/// Rounds of plain syncs and of cancels take turns: the disk is not the same all the time.
const ROUNDS: u64 = 20;
const PER_ROUND: u64 = 100;
const IN_FLIGHT: usize = 64;
const FLOOD: u64 = 50_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CancelFigures {
    pub(crate) cancel_per_s: f64,
    pub(crate) cancel_p50_us: u64,
    pub(crate) cancel_p99_us: u64,
    pub(crate) raw_sync_p50_us: u64,
    pub(crate) raw_sync_p99_us: u64,
    /// Open to first answer, with the page cache dropped.
    pub(crate) reopen_cold_ms: f64,
    pub(crate) rss_cancel_mib: f64,
    pub(crate) cancelled: u64,
}

pub(crate) fn run(task: &Task) -> Result<()> {
    let opened = Instant::now();
    let engine = Engine::open(&task.data, Options::default())?;
    let client = Client::new(&engine);
    client.stats()?;
    let reopen_cold_ms = opened.elapsed().as_secs_f64() * 1e3;
    let mut cancels = Cancels::new(task, client)?;
    let (mut times, mut raw) = (Latencies::default(), Latencies::default());
    cancels.one_at_a_time(task, &mut times, &mut raw)?;
    let (flood, before) = (FLOOD.min(task.plan.jobs / 4), cancels.done);
    let started = Instant::now();
    cancels.many_at_once(flood)?;
    let cancel_per_s = flood as f64 / started.elapsed().as_secs_f64();
    let cancelled = before + flood;
    let left = cancels.client.stats()?.counts.waiting;
    if left != task.plan.jobs - cancelled {
        return Err(format!("{left} jobs are left after {cancelled} cancels").into());
    }
    child::report(&CancelFigures {
        cancel_per_s,
        cancel_p50_us: times.percentile(50),
        cancel_p99_us: times.percentile(99),
        raw_sync_p50_us: raw.percentile(50),
        raw_sync_p99_us: raw.percentile(99),
        reopen_cold_ms,
        rss_cancel_mib: rss::peak_mib()?,
        cancelled,
    })?;
    Ok(engine.close()?)
}

struct Cancels<'t> {
    task: &'t Task,
    client: Client,
    topics: Vec<TopicName>,
    shuffled: Shuffled,
    /// So many jobs of the shuffled order have been asked for.
    done: u64,
}

impl<'t> Cancels<'t> {
    fn new(task: &'t Task, client: Client) -> Result<Cancels<'t>> {
        let (topics, shuffled) = (task.plan.topic_names()?, task.plan.shuffled());
        Ok(Cancels { task, client, topics, shuffled, done: 0 })
    }

    fn one_at_a_time(
        &mut self,
        task: &Task,
        times: &mut Latencies,
        raw: &mut Latencies,
    ) -> Result<()> {
        let mut probe = SyncProbe::create(&task.scratch.join("sync"))?;
        let mut progress = Progress::new("cancel, one at a time", ROUNDS * PER_ROUND);
        let per_round = PER_ROUND.min(self.task.plan.jobs / 4 / ROUNDS).max(1);
        for _ in 0..ROUNDS {
            probe.run(per_round as usize, raw)?;
            for _ in 0..per_round {
                let (id, command) = self.next();
                let started = Instant::now();
                let reply = self.client.call(command)?;
                times.add(started.elapsed());
                check(id, &reply)?;
            }
            progress.at(self.done);
        }
        progress.end(self.done);
        Ok(())
    }

    fn many_at_once(&mut self, count: u64) -> Result<()> {
        let mut progress = Progress::new("cancel, 64 in flight", count);
        let mut in_flight = VecDeque::with_capacity(IN_FLIGHT);
        let (mut sent, mut answered) = (0, 0);
        while answered < count {
            while sent < count && in_flight.len() < IN_FLIGHT {
                let (id, command) = self.next();
                in_flight.push_back((self.client.send(command)?, id));
                sent += 1;
            }
            let answer = self.client.receive()?;
            let at = in_flight.iter().position(|(ticket, _)| *ticket == answer.ticket);
            let Some((_, id)) = at.and_then(|at| in_flight.remove(at)) else {
                return Err("the engine answered a cancel twice".into());
            };
            check(id, &answer.reply)?;
            answered += 1;
            progress.at(answered);
        }
        progress.end(answered);
        Ok(())
    }

    fn next(&mut self) -> (u64, Command) {
        let number = self.shuffled.at(self.done);
        self.done += 1;
        let id = self.task.first_id + number;
        let target = if self.task.plan.keyed {
            let topic = self.topics[self.task.plan.topic_of(number)].clone();
            Target::Key { topic, key: key(number) }
        } else {
            Target::Id(JobId(id))
        };
        (id, Command::Cancel(vec![Cancel { target, unless_leased: false }]))
    }
}

fn check(id: u64, reply: &Reply) -> Result<()> {
    if let Reply::Changed(items) = reply
        && let [Ok(changed)] = items.as_slice()
        && changed.id.0 == id
    {
        return Ok(());
    }
    Err(unexpected(&format!("cancel of job {id}"), reply))
}
