//! `dormouse-bench push`: the program delivers to a sink of this process, on loopback.
//!
//! Throughput: jobs that wait when the push is set, until the store has acked all of them.
//! Lateness: jobs come due at a steady rate; from the due time to the arrival of the whole request.
//! Idle: the program with a push and nothing due.

mod program;
mod sink;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use program::Program;
use serde_json::json;
use sink::Sink;

use crate::Result;
use crate::child;
use crate::latency::Latencies;
use crate::pace::{Schedule, sleep_until};
use crate::progress::{self, note};

/// Bytes of a body.
const BODY_BYTES: usize = 100;
/// Jobs of a request that puts.
const PORTION: u64 = 1_000;
/// A job is put so long before it is due.
const LEAD_MS: u64 = 2_000;
/// No phase takes so long unless it hangs.
const DEADLINE: Duration = Duration::from_secs(300);

/// The flags of `push`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PushPlan {
    /// Jobs of the throughput
    #[arg(long, default_value_t = 100_000)]
    jobs: u64,
    /// Deliveries at a time
    #[arg(long, default_value_t = 200)]
    concurrency: u64,
    /// Jobs that come due each second, for the lateness
    #[arg(long, default_value_t = 1_000)]
    rate: u64,
    /// Seconds of lateness, and of idleness
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Directory for everything the server writes [default: next to this program]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// This project's server [default: `dormouse` next to this program]
    #[arg(long)]
    dormouse: Option<PathBuf>,
}

pub(crate) fn run(plan: &PushPlan) -> Result<()> {
    if plan.jobs < PORTION || plan.rate == 0 || plan.rate > 100_000 || plan.seconds == 0 {
        return Err(format!("give at least {PORTION} jobs, and a rate and time").into());
    }
    let mut program = Program::start(plan.dir.as_deref(), plan.dormouse.as_deref())?;
    let sink = Sink::start()?;
    let per_second = throughput(plan, &mut program, &sink)?;
    let mut late = lateness(plan, &mut program, &sink)?;
    note("push: idle");
    let idle_cpu_percent = program.cpu_percent_over(Duration::from_secs(plan.seconds))?;
    progress::clear();
    let figures = json!({
        "push_per_s": per_second,
        "concurrency": plan.concurrency,
        "jobs": plan.jobs,
        "late_jobs": late.len(),
        "late_p50_us": late.percentile(50),
        "late_p99_us": late.percentile(99),
        "late_max_us": late.percentile(100),
        "idle_cpu_percent": idle_cpu_percent,
    });
    child::report(&figures)
}

/// Deliveries per second, from the put of the push until all jobs are acked.
fn throughput(plan: &PushPlan, program: &mut Program, sink: &Arc<Sink>) -> Result<u64> {
    note(&format!("push: {} jobs are put", plan.jobs));
    let jobs = plan.jobs / PORTION * PORTION;
    for _ in 0..jobs / PORTION {
        let one = json!({ "text": "x".repeat(BODY_BYTES) });
        program.put_jobs("many", &vec![one; usize::try_from(PORTION)?])?;
    }
    note("push: they are delivered");
    let begun = Instant::now();
    program.set_push("many", sink.addr(), plan.concurrency)?;
    while sink.count() < jobs {
        check_time(begun)?;
        std::thread::sleep(Duration::from_millis(1));
    }
    while program.jobs_left("many")? > 0 {
        check_time(begun)?;
        std::thread::sleep(Duration::from_millis(5));
    }
    let elapsed = begun.elapsed();
    let arrived = sink.count();
    if arrived != jobs {
        return Err(format!("{arrived} requests for {jobs} jobs: some were delivered twice").into());
    }
    #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "a rate")]
    Ok((jobs as f64 / elapsed.as_secs_f64()) as u64)
}

/// How long after its due time a job arrives.
fn lateness(plan: &PushPlan, program: &mut Program, sink: &Arc<Sink>) -> Result<Latencies> {
    note(&format!("push: {} jobs come due each second", plan.rate));
    program.set_push("late", sink.addr(), plan.concurrency)?;
    let before = sink.count();
    sink.take_times();
    let schedule = Schedule::begin_in(Duration::from_millis(200));
    // Ten portions a second, so that the producer does not disturb with single puts.
    let steps = plan.seconds * 10;
    for step in 0..steps {
        sleep_until(schedule.instant(step * 100));
        let portion = plan.rate / 10;
        let job = |index: u64| {
            let at_ms = schedule.wall_ms + LEAD_MS + step * 100 + index * 100 / portion.max(1);
            // The body begins with its due time, which the sink reads.
            json!({ "text": format!("{at_ms:<BODY_BYTES$}"), "at": at_ms })
        };
        program.put_jobs("late", &(0..portion).map(job).collect::<Vec<_>>())?;
    }
    let (jobs, begun) = (before + steps * (plan.rate / 10), Instant::now());
    while sink.count() < jobs {
        check_time(begun)?;
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut late = Latencies::default();
    for (due_ms, arrived_us) in sink.take_times() {
        let early = arrived_us.checked_sub(due_ms * 1_000);
        late.add_us(early.ok_or("a job was delivered before it was due")?);
    }
    Ok(late)
}

fn check_time(begun: Instant) -> Result<()> {
    if begun.elapsed() > DEADLINE {
        return Err("the deliveries do not end".into());
    }
    Ok(())
}
