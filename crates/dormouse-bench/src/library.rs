//! `dormouse-bench library`: single calls of the library, as a program makes them.

use std::thread;
use std::time::{Duration, Instant};

use dormouse::{Durability, Queue};
use serde_json::{Map, Value};

use crate::latency::Latencies;
use crate::{Result, report};

/// The flags of `library`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LibraryPlan {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Threads that call at the same time, beside one
    #[arg(long, default_value_t = 8)]
    threads: usize,
    /// Bytes of a body
    #[arg(long, default_value_t = 100)]
    body: usize,
}

/// Measures put, and reserve with ack, in both durabilities.
pub(crate) fn run(plan: &LibraryPlan) -> Result<()> {
    let mut figures = Map::new();
    let relaxed = Durability::Relaxed { ms: 50 };
    for (name, durability) in [("relaxed", relaxed), ("synced", Durability::Synced)] {
        for threads in [1, plan.threads] {
            let dir = tempfile::tempdir()?;
            let queue = Queue::builder().durability(durability).open(dir.path())?;
            let mut add = |what: &str, mut times: Latencies, span: Duration| {
                let key = |figure: &str| format!("{name}_{what}_{threads}_{figure}");
                let rate = times.len() as f64 / span.as_secs_f64();
                figures.insert(key("per_s"), Value::from(rate));
                figures.insert(key("p50_us"), Value::from(times.percentile(50)));
                figures.insert(key("p99_us"), Value::from(times.percentile(99)));
            };
            let (times, span) = measure(plan, threads, |number| put(&queue, plan.body, number))?;
            add("put", times, span);
            let (times, span) = measure(plan, threads, |number| consume(&queue, number))?;
            add("reserve_ack", times, span);
            queue.close()?;
        }
    }
    report::print(Value::Object(figures))
}

/// A topic for each thread: none runs out of jobs because of another.
fn topic(thread: usize) -> String {
    format!("library-{thread}")
}

fn put(queue: &Queue, body: usize, thread: usize) -> Result<bool> {
    queue.put(&topic(thread), vec![b'x'; body]).wait()?;
    Ok(true)
}

/// False = no job is left.
fn consume(queue: &Queue, thread: usize) -> Result<bool> {
    let Some(job) = queue.reserve(&topic(thread)).wait()?.pop() else { return Ok(false) };
    job.ack().wait()?;
    Ok(true)
}

/// Calls from all threads until the time is over or a call says that there is nothing left.
fn measure(
    plan: &LibraryPlan,
    threads: usize,
    call: impl Fn(usize) -> Result<bool> + Sync,
) -> Result<(Latencies, Duration)> {
    let (call, span) = (&call, Duration::from_secs_f64(plan.seconds));
    let began = Instant::now();
    let measured = thread::scope(|scope| {
        let each = |number| {
            scope.spawn(move || {
                let mut times = Vec::new();
                while began.elapsed() < span {
                    let called = Instant::now();
                    if !call(number)? {
                        break;
                    }
                    times.push(called.elapsed());
                }
                Ok(times)
            })
        };
        let running: Vec<_> = (0..threads).map(each).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Result<Vec<Duration>>>| {
            thread.join().unwrap_or_else(|_| Err("a caller panicked".into()))
        };
        running.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    let passed = began.elapsed();
    let mut times = Latencies::default();
    measured.into_iter().flatten().for_each(|time| times.add(time));
    Ok((times, passed))
}
