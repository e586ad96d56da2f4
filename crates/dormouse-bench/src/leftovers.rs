//! Remains of cancelled jobs: all jobs of a store, or most of them, are put and cancelled, the
//! process is killed at once, and the next start finds the rest.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use dormouse_core::command::{Command, Reply};
use dormouse_core::job::JobId;
use dormouse_core::op::{Cancel, Target};
use dormouse_disk::engine::{Engine, Options};
use serde::{Deserialize, Serialize};

use crate::child::{self, Task};
use crate::client::{Client, unexpected};
use crate::fill::Fill;
use crate::plan::{Phase, Plan};
use crate::progress::{Progress, note};
use crate::{Result, reopen, rss};

const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Everything of this measurement, as it is printed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LeftoverFigures {
    #[serde(flatten)]
    cancelled: CancelledFigures,
    /// The files that the killed process left.
    cancelled_disk_killed_bytes: u64,
    #[serde(flatten)]
    started: StartedFigures,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct CancelledFigures {
    cancelled_put_per_s: f64,
    cancelled_cancel_per_s: f64,
    cancelled_rss_mib: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StartedFigures {
    /// From the open to the first answer.
    cancelled_reopen_ms: f64,
    cancelled_rss_reopen_mib: f64,
    /// Right after the first answer.
    cancelled_disk_bytes: u64,
    /// After the quiet time; and how long the last change of it was after the start.
    cancelled_disk_quiet_bytes: u64,
    cancelled_disk_settled_s: f64,
    cancelled_rss_quiet_mib: f64,
}

impl LeftoverFigures {
    pub(crate) fn rss_mib(&self) -> f64 {
        let (cancelled, started) = (&self.cancelled, &self.started);
        cancelled.cancelled_rss_mib.max(started.cancelled_rss_quiet_mib)
    }
}

/// The parent's side: both processes, on a directory of their own.
pub(crate) fn measure(task: &Task) -> Result<LeftoverFigures> {
    let mut task = Task { data: task.scratch.join("cancelled"), ..task.clone() };
    task.plan.jobs = task.plan.cancelled;
    task.phase = Phase::Cancelled;
    let (cancelled, running) = child::start::<CancelledFigures>(&task)?;
    running.kill()?;
    note("cancelled: killed");
    let (cancelled_disk_killed_bytes, _) = rss::disk_use(&task.data)?;
    task.phase = Phase::Leftovers;
    let started = child::finish::<StartedFigures>(&task)?;
    Ok(LeftoverFigures { cancelled, cancelled_disk_killed_bytes, started })
}

/// The first process. It does not wait for the background work: the kill comes at the worst time.
pub(crate) fn cancel_all(task: &Task) -> Result<()> {
    let engine = Engine::open(&task.data, Options::default())?;
    let mut fill = Fill::new(&task.plan, Client::new(&engine))?;
    fill.fill()?;
    let began = Instant::now();
    cancel(&task.plan, &Client::new(&engine), fill.first_id.unwrap_or(0))?;
    let cancelled_cancel_per_s = task.plan.jobs as f64 / began.elapsed().as_secs_f64();
    child::report(&CancelledFigures {
        cancelled_put_per_s: fill.rate(0..10),
        cancelled_cancel_per_s,
        cancelled_rss_mib: rss::peak_mib()?,
    })?;
    child::wait_for_kill();
    Ok(())
}

fn cancel(plan: &Plan, client: &Client, first_id: u64) -> Result<()> {
    let mut progress = Progress::new("cancel", plan.jobs);
    let (mut next, mut answered, mut in_flight) = (0, 0, VecDeque::new());
    let cancel =
        |number| Cancel { target: Target::Id(JobId(first_id + number)), unless_leased: false };
    let count = plan.jobs - kept(plan);
    while answered < count {
        while next < plan.jobs && in_flight.len() < plan.window() {
            let end = plan.jobs.min(next + plan.batch as u64);
            let cancelled = (next..end).filter(|number| plan.is_cancelled(*number));
            in_flight.push_back(client.send(Command::Cancel(cancelled.map(cancel).collect()))?);
            next = end;
        }
        let answer = client.receive()?;
        let at = in_flight.iter().position(|ticket| *ticket == answer.ticket);
        at.and_then(|at| in_flight.remove(at)).ok_or("a cancel was answered twice")?;
        match &answer.reply {
            Reply::Changed(changed) if changed.iter().all(std::result::Result::is_ok) => {
                answered += changed.len() as u64;
            }
            other => return Err(unexpected("cancel", other)),
        }
        progress.at(answered);
    }
    progress.end(answered);
    Ok(())
}

/// Jobs that are not cancelled.
fn kept(plan: &Plan) -> u64 {
    if plan.keep_every == 0 { 0 } else { plan.jobs.div_ceil(plan.keep_every) }
}

/// The second process: starts, and then does nothing.
pub(crate) fn start(task: &Task) -> Result<()> {
    let (engine, reopened) = reopen::open(task, kept(&task.plan))?;
    let (started, quiet) = (Instant::now(), Duration::from_secs_f64(task.plan.quiet_seconds));
    let (first_bytes, _) = rss::disk_use(&task.data)?;
    let (mut bytes, mut settled) = (first_bytes, Duration::ZERO);
    note(&format!("cancelled: {bytes} bytes after the start, quiet for {quiet:?}"));
    while let Some(left) = quiet.checked_sub(started.elapsed()) {
        thread::sleep(SAMPLE_EVERY.min(left));
        let (now_bytes, _) = rss::disk_use(&task.data)?;
        if now_bytes != bytes {
            (bytes, settled) = (now_bytes, started.elapsed());
        }
    }
    note(&format!("cancelled: {bytes} bytes after that"));
    child::report(&StartedFigures {
        cancelled_reopen_ms: reopened.reopen_ms,
        cancelled_rss_reopen_mib: reopened.rss_reopen_mib,
        cancelled_disk_bytes: first_bytes,
        cancelled_disk_quiet_bytes: bytes,
        cancelled_disk_settled_s: settled.as_secs_f64(),
        cancelled_rss_quiet_mib: rss::peak_mib()?,
    })?;
    Ok(engine.close()?)
}
