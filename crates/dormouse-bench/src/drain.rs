//! The drain: with a clock that is ahead of all due times, reserve and ack in batches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{EndReply, LeasedJob};
use dormouse_core::topic::TopicName;
use dormouse_disk::clock::{Reading, SystemClock, TimeSource};
use dormouse_disk::engine::{Engine, Options};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::child::{self, Task};
use crate::client::{Client, reserve, unexpected};
use crate::plan::{ALL_DUE_MS, Plan, number_in};
use crate::progress::Progress;
use crate::rss;
use dormouse_check::generate::rng::mix;

/// Of a larger backlog, only this many jobs are drained.
const SAMPLE: u64 = 5_000_000;
/// Consumers, each with one reserve and one ack on their way.
const LOOPS: usize = 4;
const TOPICS_MAX: u64 = 1_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DrainFigures {
    pub(crate) drain_per_s: f64,
    pub(crate) drain_jobs: u64,
    /// Whether all jobs were drained, each exactly once; else only a sample was.
    pub(crate) drain_whole: bool,
    pub(crate) drain_cpu_us: f64,
    pub(crate) rss_drain_mib: f64,
}

/// The computer's clock, ahead by a month.
struct Ahead;

impl TimeSource for Ahead {
    fn read(&self) -> Reading {
        let real = SystemClock.read();
        Reading {
            boottime_ms: real.boottime_ms + ALL_DUE_MS,
            wall_ms: real.wall_ms + ALL_DUE_MS,
            ..real
        }
    }

    fn boot_id(&self) -> [u8; 16] {
        SystemClock.boot_id()
    }

    fn on_change(&self, _wake: Arc<dyn Fn() + Send + Sync>) {}
}

pub(crate) fn run(task: &Task) -> Result<()> {
    let engine =
        Engine::open(&task.data, Options { clock: Arc::new(Ahead), ..Options::default() })?;
    let waiting = task.plan.jobs - task.cancelled;
    let mut drain = Drain::new(task, Client::new(&engine), waiting.min(SAMPLE))?;
    let cpu_before = rss::cpu();
    let time = drain.drain()?;
    let cpu = rss::cpu() - cpu_before;
    let left = drain.client.stats()?.counts.waiting;
    if left + drain.acked != waiting {
        let acked = drain.acked;
        return Err(format!("{acked} of {waiting} jobs were acked, {left} are left").into());
    }
    let whole = left == 0;
    if whole && drain.fingerprint != expected_fingerprint(task) {
        return Err("the drained jobs are not those that were put".into());
    }
    child::report(&DrainFigures {
        drain_per_s: drain.acked as f64 / time.as_secs_f64(),
        drain_jobs: drain.acked,
        drain_whole: whole,
        drain_cpu_us: cpu.as_secs_f64() * 1e6 / drain.acked as f64,
        rss_drain_mib: rss::peak_mib()?,
    })?;
    Ok(engine.close()?)
}

/// Independent of the order: a sum over all jobs that are left.
fn expected_fingerprint(task: &Task) -> u64 {
    let put = (0..task.plan.jobs).fold(0_u64, |sum, number| sum.wrapping_add(mix(number)));
    let shuffled = task.plan.shuffled();
    (0..task.cancelled).fold(put, |sum, index| sum.wrapping_sub(mix(shuffled.at(index))))
}

struct Drain<'t> {
    task: &'t Task,
    client: Client,
    /// Topics that one reserve names. One group alone is shared by all loops.
    groups: Vec<Vec<TopicName>>,
    next_group: usize,
    /// The group of each reserve on its way.
    reserves: Vec<(Ticket, usize)>,
    sample: u64,
    taken: u64,
    acked: u64,
    acks_waiting: u64,
    fingerprint: u64,
}

impl<'t> Drain<'t> {
    fn new(task: &'t Task, client: Client, sample: u64) -> Result<Drain<'t>> {
        let topics = task.plan.topic_names()?;
        let groups = topics.chunks(topics_per_reserve(&task.plan)).map(<[_]>::to_vec).collect();
        Ok(Drain {
            task,
            client,
            groups,
            next_group: 0,
            reserves: Vec::new(),
            sample,
            taken: 0,
            acked: 0,
            acks_waiting: 0,
            fingerprint: 0,
        })
    }

    fn drain(&mut self) -> Result<Duration> {
        let mut progress = Progress::new("drain", self.sample);
        let started = Instant::now();
        for _ in 0..LOOPS {
            if let Some(group) = self.take_group() {
                let ticket = self.client.send(self.reserve(group))?;
                self.reserves.push((ticket, group));
            }
        }
        while !self.reserves.is_empty() || self.acks_waiting > 0 {
            let answer = self.client.receive()?;
            match answer.reply {
                Reply::Jobs(jobs) => self.take(answer.ticket, &jobs)?,
                Reply::Ended(ended) => {
                    if let Some(wrong) = ended.iter().find(|item| **item != Ok(EndReply::Done)) {
                        return Err(format!("an ack was answered with {wrong:?}").into());
                    }
                    self.acks_waiting -= 1;
                    self.acked += ended.len() as u64;
                }
                other => return Err(unexpected("reserve or ack", &other)),
            }
            progress.at(self.acked);
        }
        progress.end(self.acked);
        Ok(started.elapsed())
    }

    /// Acks the last jobs and reserves more in one batch.
    fn take(&mut self, ticket: Ticket, jobs: &[LeasedJob]) -> Result<()> {
        let Some(at) = self.reserves.iter().position(|(waiting, _)| *waiting == ticket) else {
            return Err("the engine answered a reserve twice".into());
        };
        let (_, group) = self.reserves.swap_remove(at);
        self.check(jobs)?;
        self.taken += jobs.len() as u64;
        let group = if jobs.is_empty() { self.take_group() } else { Some(group) };
        let more = group.filter(|_| self.taken < self.sample);
        let ack = Command::Ack(jobs.iter().map(|job| job.token).collect());
        let ticket = match (jobs.is_empty(), more) {
            (true, None) => return Ok(()),
            (true, Some(group)) => self.client.send(self.reserve(group))?,
            (false, Some(group)) => self.client.send_both(ack, self.reserve(group))?.1,
            (false, None) => self.client.send(ack)?,
        };
        self.acks_waiting += u64::from(!jobs.is_empty());
        self.reserves.extend(more.map(|group| (ticket, group)));
        Ok(())
    }

    /// Each job must carry its own body, and come in the order of due times.
    fn check(&mut self, jobs: &[LeasedJob]) -> Result<()> {
        let mut before_ms = 0;
        for job in jobs {
            let number = number_in(&job.body).filter(|_| job.body.len() == self.task.plan.body);
            let Some(number) = number.filter(|n| self.task.first_id + n == job.id.0) else {
                return Err(format!("job {} has another job's body", job.id).into());
            };
            if job.due_at < before_ms {
                return Err(format!("job {} came out of order", job.id).into());
            }
            before_ms = job.due_at;
            self.fingerprint = self.fingerprint.wrapping_add(mix(number));
        }
        Ok(())
    }

    fn take_group(&mut self) -> Option<usize> {
        if self.groups.len() == 1 {
            // Shared by all, and empty for all.
            return (self.taken == 0).then_some(0);
        }
        let group = (self.next_group < self.groups.len()).then_some(self.next_group);
        self.next_group += 1;
        group
    }

    fn reserve(&self, group: usize) -> Command {
        reserve(self.groups[group].clone(), self.task.plan.batch, 0)
    }
}

/// Enough topics to fill a reserve.
fn topics_per_reserve(plan: &Plan) -> usize {
    let jobs_per_topic = (plan.jobs / plan.topics).max(1);
    (plan.batch as u64 / jobs_per_topic).clamp(1, TOPICS_MAX) as usize
}
