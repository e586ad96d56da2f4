//! The fill: puts, several batches on their way, until the backlog is there.
//!
//! Figures are written down once the background work is quiet. Then the process stays, its engine
//! open, until it is killed.

use std::time::{Duration, Instant};

use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply};
use dormouse_core::op::PutOutcome;
use dormouse_disk::engine::{Engine, Options};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::child::{self, Task};
use crate::client::{Answered, Client, unexpected};
use crate::latency::Latencies;
use crate::plan::{Maker, Plan};
use crate::progress::Progress;
use crate::rss;

/// Bytes that a put counts for besides its body.
const OVERHEAD_BYTES: u64 = 48;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FillFigures {
    pub(crate) put_per_s: f64,
    pub(crate) put_first_tenth_per_s: f64,
    pub(crate) put_last_tenth_per_s: f64,
    /// From the submit of a batch to its answer, with all the others on their way.
    pub(crate) put_batch_p50_us: u64,
    pub(crate) put_batch_p99_us: u64,
    pub(crate) put_batch_max_us: u64,
    pub(crate) put_cpu_us: f64,
    pub(crate) rss_fill_mib: f64,
    pub(crate) bytes_written_per_byte_put: f64,
    /// How long flushes and merges went on after the last put.
    pub(crate) quiet_after_s: f64,
    pub(crate) disk_bytes: u64,
    pub(crate) runs: u64,
    /// The first job's id; the others follow without a gap.
    pub(crate) first_id: u64,
}

pub(crate) fn run(task: &Task) -> Result<()> {
    let plan = &task.plan;
    let engine = Engine::open(&task.data, Options::default())?;
    let mut fill = Fill::new(plan, Client::new(&engine))?;
    let cpu_before = rss::cpu();
    fill.fill()?;
    let cpu = rss::cpu() - cpu_before;
    let quiet_after = rss::wait_until_quiet()?;
    let (disk_bytes, runs) = rss::disk_use(&task.data)?;
    let byte_puts = plan.jobs * (plan.body as u64 + OVERHEAD_BYTES);
    child::report(&FillFigures {
        put_per_s: fill.rate(0..10),
        put_first_tenth_per_s: fill.rate(0..1),
        put_last_tenth_per_s: fill.rate(9..10),
        put_batch_p50_us: fill.latencies.percentile(50),
        put_batch_p99_us: fill.latencies.percentile(99),
        put_batch_max_us: fill.latencies.percentile(100),
        put_cpu_us: cpu.as_secs_f64() * 1e6 / plan.jobs as f64,
        rss_fill_mib: rss::peak_mib()?,
        bytes_written_per_byte_put: rss::written_bytes()? as f64 / byte_puts as f64,
        quiet_after_s: quiet_after.as_secs_f64(),
        disk_bytes,
        runs,
        first_id: fill.first_id.unwrap_or(0),
    })?;
    child::wait_for_kill();
    Ok(())
}

pub(crate) struct Fill<'p> {
    plan: &'p Plan,
    client: Client,
    maker: Maker,
    /// Batches on their way: their tickets, when they were sent, their first job's number.
    in_flight: Vec<(Ticket, Instant, u64)>,
    latencies: Latencies,
    pub(crate) first_id: Option<u64>,
    /// Nobody else puts, so the ids follow without a gap.
    is_alone: bool,
    answered: u64,
    /// The time at the beginning and when each tenth was answered, and how many were.
    tenths: Vec<(Duration, u64)>,
    started: Instant,
}

impl<'p> Fill<'p> {
    pub(crate) fn new(plan: &'p Plan, client: Client) -> Result<Fill<'p>> {
        Ok(Fill {
            plan,
            client,
            maker: Maker::new(plan)?,
            in_flight: Vec::new(),
            latencies: Latencies::default(),
            first_id: None,
            is_alone: true,
            answered: 0,
            tenths: vec![(Duration::ZERO, 0)],
            started: Instant::now(),
        })
    }

    /// Others put at the same time.
    pub(crate) fn beside_others(self) -> Fill<'p> {
        Fill { is_alone: false, ..self }
    }

    pub(crate) fn fill(&mut self) -> Result<()> {
        let (jobs, batch) = (self.plan.jobs, self.plan.batch as u64);
        let mut progress = Progress::new("fill", jobs);
        let mut next = 0;
        self.started = Instant::now();
        while self.answered < jobs {
            while next < jobs && self.in_flight.len() < self.plan.window() {
                let end = jobs.min(next + batch);
                let puts = self.maker.puts(next..end);
                let sent_at = Instant::now();
                let ticket = self.client.send(Command::Put(puts))?;
                self.in_flight.push((ticket, sent_at, next));
                next = end;
            }
            let answered = self.client.receive()?;
            self.check(&answered)?;
            progress.at(self.answered);
        }
        progress.end(self.answered);
        Ok(())
    }

    /// Every job must be new, and its id follow from its number if nobody else puts.
    fn check(&mut self, answered: &Answered) -> Result<()> {
        let Reply::Put(items) = &answered.reply else {
            return Err(unexpected("put", &answered.reply));
        };
        let mut waiting = self.in_flight.iter();
        let Some(at) = waiting.position(|(ticket, ..)| *ticket == answered.ticket) else {
            return Err("the engine answered a put twice".into());
        };
        let (_, sent_at, number) = self.in_flight.remove(at);
        self.latencies.add(answered.at - sent_at);
        for (item, number) in items.iter().zip(number..) {
            let put = item.as_ref().map_err(|error| format!("put of job {number}: {error}"))?;
            let first_id = *self.first_id.get_or_insert(put.id.0);
            let is_next = !self.is_alone || put.id.0 == first_id + number;
            if put.outcome != PutOutcome::Created || !is_next {
                return Err(format!("put of job {number} was answered with {put:?}").into());
            }
        }
        self.answered += items.len() as u64;
        while self.answered >= self.plan.jobs * self.tenths.len() as u64 / 10
            && self.tenths.len() < 11
        {
            self.tenths.push((answered.at - self.started, self.answered));
        }
        Ok(())
    }

    pub(crate) fn rate(&self, tenths: std::ops::Range<usize>) -> f64 {
        let [(from, before), (to, after)] = [tenths.start, tenths.end].map(|at| self.tenths[at]);
        (after - before) as f64 / (to - from).as_secs_f64()
    }
}
