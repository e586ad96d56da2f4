//! `dormouse-bench schedules`: what schedules cost while they rest, and when many tick at once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dormouse::{Overlap, Pending, PutScheduleReply, Queue, Rule};
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_redis::{Options, RedisBackend};
use serde_json::{Map, Value, json};

use crate::latency::Latencies;
use crate::{Result, report, rss};

/// The flags of `schedules`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SchedulesPlan {
    /// Schedules that rest
    #[arg(long, default_value_t = 1_000_000)]
    resting: usize,
    /// Topics that they are in
    #[arg(long, default_value_t = 10_000)]
    topics: usize,
    /// Schedules that tick at one instant
    #[arg(long, default_value_t = 100_000)]
    at_once: usize,
    /// Ticks in a second, for their lateness
    #[arg(long, default_value_t = 1_000)]
    rate: u64,
    /// Seconds of that
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Phases to leave out
    #[arg(long, value_delimiter = ',')]
    skip: Vec<Phase>,
    /// Opens this store and tells what it costs, for the parent process
    #[arg(long, hide = true)]
    open: Option<PathBuf>,
}

/// The measurements, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Phase {
    Resting,
    AtOnce,
    Late,
    RedisLate,
}

/// Puts that are on their way at the same time.
const IN_FLIGHT: usize = 256;

pub(crate) fn run(plan: &SchedulesPlan) -> Result<()> {
    if let Some(dir) = &plan.open {
        return report::print(opened(dir)?);
    }
    let mut figures = Map::new();
    for (name, expression) in [("daily", "0 3 * * *"), ("five_minutes", "*/5 * * * *")] {
        figures.insert(format!("next_{name}_ns"), json!(next_ns(expression)?));
    }
    let dir = tempfile::tempdir()?;
    let includes = |phase: Phase| !plan.skip.contains(&phase);
    if includes(Phase::Resting) {
        resting(plan, dir.path(), &mut figures)?;
    }
    if includes(Phase::AtOnce) {
        at_once(plan, &dir.path().join("at_once"), &mut figures)?;
    }
    if includes(Phase::Late) {
        lateness(plan, Queue::open(dir.path().join("late"))?, "", &mut figures)?;
    }
    if includes(Phase::RedisLate) {
        let server = RedisServer::start(RedisConfig::default());
        let backend = RedisBackend::open(&server.url(), Options::default())?;
        let queue = Queue::from_backend(Arc::new(backend));
        lateness(plan, queue, "redis_", &mut figures)?;
    }
    report::print(Value::Object(figures))
}

/// What schedules cost that are far off.
fn resting(plan: &SchedulesPlan, dir: &Path, figures: &mut Map<String, Value>) -> Result<()> {
    let (empty, full) = (dir.join("empty"), dir.join("full"));
    Queue::open(&empty)?.close()?;
    figures.insert("define_per_s".to_owned(), json!(fill(plan, &full)?));
    // The first start after the fill replays its last journal into memory; once it has been quiet
    // the store has written all to runs, and the next start shows what schedules cost at rest.
    for (name, path) in [("empty", &empty), ("replayed", &full), ("resting", &full)] {
        let figure = child(path)?;
        let of = figure.as_object().ok_or("the child printed no object")?;
        for (key, value) in of.iter().filter(|(key, _)| !key.starts_with("machine")) {
            figures.insert(format!("{name}_{key}"), value.clone());
        }
    }
    Ok(())
}

/// How long the search for the next tick takes.
fn next_ns(expression: &str) -> Result<u64> {
    const TICKS: u64 = 1_000;
    let rule = Rule::cron(expression).zone("Europe/Berlin");
    let (began, mut from) = (Instant::now(), SystemTime::now());
    for _ in 0..20 {
        let preview = rule.preview(from, TICKS as usize)?;
        let last_ms = preview.ticks.last().copied().ok_or("a rule without ticks")?;
        from = UNIX_EPOCH + Duration::from_millis(last_ms);
    }
    Ok(u64::try_from(began.elapsed().as_nanos())? / (20 * TICKS))
}

fn define(
    queue: &Queue,
    topic: &str,
    name: &str,
    rule: Rule,
    start: Option<SystemTime>,
) -> Pending<PutScheduleReply> {
    let call = queue.schedule(topic, name, rule, vec![b'x'; 100]).overlap(Overlap::Allow);
    match start {
        Some(at) => call.start_at(at).send(),
        None => call.send(),
    }
}

/// Schedules that tick in a day or later, many in each topic; gives how many were defined in a
/// second.
fn fill(plan: &SchedulesPlan, dir: &Path) -> Result<f64> {
    let queue = Queue::open(dir)?;
    let began = Instant::now();
    let mut pending = Vec::new();
    for number in 0..plan.resting {
        let (topic, name) = (format!("t{}", number % plan.topics), format!("s{number}"));
        let rule = Rule::every(Duration::from_secs(86_400 + number as u64 % 86_400));
        pending.push(define(&queue, &topic, &name, rule, None));
        if pending.len() == IN_FLIGHT {
            for one in pending.drain(..) {
                one.wait()?;
            }
        }
    }
    for one in pending {
        one.wait()?;
    }
    let rate = plan.resting as f64 / began.elapsed().as_secs_f64();
    queue.close()?;
    Ok(rate)
}

/// Opens a store in a process of its own.
fn child(dir: &Path) -> Result<Value> {
    let program = std::env::current_exe()?;
    let output = Command::new(program).args(["schedules", "--open"]).arg(dir).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn opened(dir: &Path) -> Result<Value> {
    let began = Instant::now();
    let queue = Queue::open(dir)?;
    let open_ms = began.elapsed().as_millis();
    rss::wait_until_quiet()?;
    let idle_cpu_percent = rss::cpu_percent_over(Duration::from_secs(10));
    let figures = json!({
        "open_ms": u64::try_from(open_ms)?,
        "peak_mib": rss::peak_mib()?,
        "idle_cpu_percent": idle_cpu_percent,
    });
    queue.close()?;
    Ok(figures)
}

/// Many ticks at one instant, and what a put into another topic takes meanwhile.
fn at_once(plan: &SchedulesPlan, dir: &Path, figures: &mut Map<String, Value>) -> Result<()> {
    let queue = Queue::open(dir)?;
    // Time enough to define them all.
    let instant = SystemTime::now() + Duration::from_secs(10 + plan.at_once as u64 / 10_000);
    let mut pending = Vec::new();
    for number in 0..plan.at_once {
        let (topic, name) = (format!("many{}", number % 10), format!("s{number}"));
        let rule = Rule::every(Duration::from_secs(86_400));
        pending.push(define(&queue, &topic, &name, rule, Some(instant)));
        if pending.len() == IN_FLIGHT {
            for one in pending.drain(..) {
                one.wait()?;
            }
        }
    }
    for one in pending {
        one.wait()?;
    }
    let wait = instant.duration_since(SystemTime::now())?;
    thread::sleep(wait);
    let is_done = AtomicBool::new(false);
    let (took, mut others) = thread::scope(|scope| -> Result<(Duration, Latencies)> {
        let other = scope.spawn(|| -> Result<Latencies> {
            let mut times = Latencies::default();
            while !is_done.load(Ordering::Relaxed) {
                let called = Instant::now();
                queue.put("other", "x").wait()?;
                times.add(called.elapsed());
            }
            Ok(times)
        });
        let took = ready_after(&queue, plan.at_once, instant);
        is_done.store(true, Ordering::Relaxed);
        let times = other.join().unwrap_or_else(|_| Err("a caller panicked".into()))?;
        Ok((took?, times))
    })?;
    figures.insert("at_once_all_given_ms".to_owned(), json!(u64::try_from(took.as_millis())?));
    figures.insert("at_once_other_put_p99_us".to_owned(), json!(others.percentile(99)));
    figures.insert("at_once_other_put_max_us".to_owned(), json!(others.percentile(100)));
    queue.close()?;
    Ok(())
}

/// How long after an instant all jobs are there.
fn ready_after(queue: &Queue, jobs: usize, instant: SystemTime) -> Result<Duration> {
    loop {
        let mut ready = 0;
        for number in 0..10 {
            ready += queue.stats(&format!("many{number}")).wait()?.ready;
        }
        let passed = instant.elapsed().unwrap_or_default();
        if ready >= jobs as u64 {
            return Ok(passed);
        }
        if passed > Duration::from_secs(120) {
            return Err(format!("{ready} of {jobs} ticks were given within {passed:?}").into());
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// How late jobs of ticks are taken by somebody who waits.
fn lateness(
    plan: &SchedulesPlan,
    queue: Queue,
    prefix: &str,
    figures: &mut Map<String, Value>,
) -> Result<()> {
    let first = SystemTime::now() + Duration::from_secs(5);
    let mut pending = Vec::new();
    for number in 0..plan.rate {
        let start = first + Duration::from_micros(number * 1_000_000 / plan.rate);
        let rule = Rule::every(Duration::from_secs(1));
        pending.push(define(&queue, "late", &format!("s{number}"), rule, Some(start)));
    }
    for one in pending {
        one.wait()?;
    }
    let until = first + Duration::from_secs(plan.seconds);
    let mut late = Latencies::default();
    let mut early = 0_u64;
    while SystemTime::now() < until {
        let jobs = queue.reserve("late").max(64).wait_for(Duration::from_secs(1)).wait()?;
        let now = SystemTime::now();
        for job in jobs {
            match now.duration_since(job.due_at()) {
                Ok(span) => late.add(span),
                Err(_) => early += 1,
            }
            drop(job.ack().send());
        }
    }
    let found = [
        ("late_ticks", late.len() as u64),
        ("late_p50_us", late.percentile(50)),
        ("late_p99_us", late.percentile(99)),
        ("late_max_us", late.percentile(100)),
        ("early", early),
    ];
    figures.extend(found.map(|(name, figure)| (format!("{prefix}{name}"), json!(figure))));
    queue.close()?;
    Ok(())
}
