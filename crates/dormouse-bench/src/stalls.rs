//! `dormouse-bench stalls`: how long others wait while one topic meets many cancelled jobs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dormouse_core::command::{Command, Reply};
use dormouse_core::job::JobId;
use dormouse_core::op::{Cancel, Put, Reserve, Target};
use dormouse_core::topic::TopicName;
use dormouse_disk::clock::VirtualClock;
use dormouse_disk::engine::{Engine, Options};
use serde_json::json;

use crate::client::{Client, unexpected};
use crate::latency::Latencies;
use crate::progress::Progress;
use crate::{Result, report, rss};

/// The flags of `stalls`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StallsPlan {
    /// Jobs that are put with a delay and cancelled before they are due
    #[arg(long, default_value_t = 3_000_000)]
    cancelled: usize,
    /// Jobs per request while they are put and cancelled
    #[arg(long, default_value_t = 1_000)]
    batch: usize,
    /// Bytes of a body
    #[arg(long, default_value_t = 100)]
    body: usize,
}

const DELAY: Duration = Duration::from_secs(3_600);
/// A consumer waits this long at most until all cancelled jobs are passed.
const WAIT_MS: i64 = 600_000;

/// Measures puts and reserves on another topic, before the cancelled jobs are due and while a
/// consumer waits for the job behind them.
pub(crate) fn run(plan: &StallsPlan) -> Result<()> {
    let (dir, clock) = (tempfile::tempdir()?, VirtualClock::new());
    let options = Options { clock: Arc::new(clock.clone()), ..Options::default() };
    let engine = Engine::open(dir.path(), options)?;
    cancel_all(&engine, plan)?;
    let topic = TopicName::new("cancelled")?;
    let delay_ms = Some(i64::try_from(DELAY.as_millis())? + 1);
    let live = Put { delay_ms, ..Put::new(topic.clone(), "live") };
    let client = Client::new(&engine);
    client.call(Command::Put(vec![live]))?;
    let mut quiet = others(&engine, || {
        thread::sleep(Duration::from_secs(2));
        Ok(())
    })?;
    let mut passed = Duration::ZERO;
    let mut busy = others(&engine, || {
        let began = Instant::now();
        clock.advance(DELAY + Duration::from_secs(1));
        let topics = vec![topic.clone()];
        let reserve = Reserve { topics, max: 1, wait_ms: WAIT_MS, ttr_ms: None, session: None };
        let reply = client.call(Command::Reserve(reserve))?;
        passed = began.elapsed();
        match reply {
            Reply::Jobs(jobs) if jobs.len() == 1 => Ok(()),
            other => Err(unexpected("the reserve of the live job", &other)),
        }
    })?;
    engine.close()?;
    report::print(json!({
        "cancelled": plan.cancelled,
        "quiet_p99_us": quiet.percentile(99),
        "quiet_slowest_us": quiet.percentile(100),
        "passed_ms": passed.as_secs_f64() * 1e3,
        "other_calls": busy.len(),
        "other_p99_us": busy.percentile(99),
        "other_slowest_us": busy.percentile(100),
        "rss_mib": rss::peak_mib()?,
    }))
}

fn cancel_all(engine: &Engine, plan: &StallsPlan) -> Result<()> {
    let (client, topic) = (Client::new(engine), TopicName::new("cancelled")?);
    let delay_ms = Some(i64::try_from(DELAY.as_millis())?);
    let mut ids: Vec<JobId> = Vec::with_capacity(plan.cancelled);
    let mut progress = Progress::new("put", plan.cancelled as u64);
    while ids.len() < plan.cancelled {
        let put = Put { delay_ms, ..Put::new(topic.clone(), vec![b'x'; plan.body]) };
        let count = plan.batch.min(plan.cancelled - ids.len());
        let Reply::Put(puts) = client.call(Command::Put(vec![put; count]))? else {
            return Err("a put has another reply".into());
        };
        for put in puts {
            ids.push(put?.id);
        }
        progress.at(ids.len() as u64);
    }
    let mut progress = Progress::new("cancel", plan.cancelled as u64);
    for (number, ids) in ids.chunks(plan.batch).enumerate() {
        let cancel = |id: &JobId| Cancel { target: Target::Id(*id), unless_leased: false };
        client.call(Command::Cancel(ids.iter().map(cancel).collect()))?;
        progress.at((number * plan.batch) as u64);
    }
    Ok(())
}

/// The times of puts and reserves on a topic of their own while `meanwhile` runs.
fn others(engine: &Engine, meanwhile: impl FnOnce() -> Result<()>) -> Result<Latencies> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let running = scope.spawn(|| {
            let (client, topic) = (Client::new(engine), TopicName::new("other")?);
            let mut times = Latencies::default();
            while !stop.load(Ordering::Relaxed) {
                let called = Instant::now();
                client.call(Command::Put(vec![Put::new(topic.clone(), "x")]))?;
                times.add(called.elapsed());
                let topics = vec![topic.clone()];
                let reserve = Reserve { topics, max: 1, wait_ms: 0, ttr_ms: None, session: None };
                let called = Instant::now();
                client.call(Command::Reserve(reserve))?;
                times.add(called.elapsed());
            }
            Ok(times)
        });
        let done = meanwhile();
        stop.store(true, Ordering::Relaxed);
        let times = running.join().unwrap_or_else(|_| Err("a caller panicked".into()));
        done.and(times)
    })
}
