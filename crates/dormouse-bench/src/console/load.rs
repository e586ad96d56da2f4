//! Jobs that come due at a steady rate, and the consumers who wait for them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::Http;
use crate::Result;
use crate::latency::Latencies;
use crate::pace::{Schedule, sleep_until, wall_us};

/// Consumers, each on a connection of its own.
const CONSUMERS: usize = 2;
/// A job is put so long before it is due.
const LEAD_MS: u64 = 1_000;
/// Portions of a second in which jobs are put.
const PORTIONS: u64 = 10;
/// The last job comes so long after its due time at most, unless the server hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How late the jobs of so many seconds are.
pub(super) fn run(addr: SocketAddr, rate: u64, seconds: u64) -> Result<Latencies> {
    let portion = rate / PORTIONS;
    let (jobs, taken) = (seconds * PORTIONS * portion, AtomicU64::new(0));
    let end = Instant::now() + Duration::from_secs(seconds) + TIMEOUT;
    thread::scope(|scope| {
        let taken = &taken;
        let consume = || consume(addr, taken, jobs, end);
        let consumers: Vec<_> = (0..CONSUMERS).map(|_| scope.spawn(consume)).collect();
        produce(addr, portion, seconds)?;
        let mut late = Latencies::default();
        for consumer in consumers {
            let joined = consumer.join().map_err(|_| "a consumer panicked")?;
            late.append(joined?);
        }
        if late.len() as u64 != jobs {
            return Err(format!("{} jobs of {jobs} came", late.len()).into());
        }
        Ok(late)
    })
}

fn produce(addr: SocketAddr, portion: u64, seconds: u64) -> Result<()> {
    let mut http = Http::open(addr)?;
    let (schedule, step_ms) = (Schedule::begin_in(Duration::from_millis(100)), 1_000 / PORTIONS);
    for step in 0..seconds * PORTIONS {
        sleep_until(schedule.instant(step * step_ms));
        let job = |index: u64| {
            let at_ms = schedule.wall_ms + LEAD_MS + step * step_ms + index * step_ms / portion;
            json!({ "body": at_ms, "at": at_ms })
        };
        let jobs: Vec<Value> = (0..portion).map(job).collect();
        http.post("/v1/topics/load/jobs", &json!(jobs))?;
    }
    Ok(())
}

fn consume(addr: SocketAddr, taken: &AtomicU64, jobs: u64, end: Instant) -> Result<Latencies> {
    let (mut http, mut late) = (Http::open(addr)?, Latencies::default());
    while taken.load(Ordering::Relaxed) < jobs && Instant::now() < end {
        let wanted = json!({ "max": 100, "wait": "200ms" });
        let answer = http.post("/v1/topics/load/reserve", &wanted)?;
        let arrived_us = wall_us();
        let given = answer["jobs"].as_array().ok_or("a reserve without jobs")?;
        if given.is_empty() {
            continue;
        }
        for job in given {
            let due_ms = job["body"].as_u64().ok_or("a job without its due time")?;
            late.add_us(arrived_us.saturating_sub(due_ms * 1_000));
        }
        taken.fetch_add(given.len() as u64, Ordering::Relaxed);
        let tokens: Vec<&Value> = given.iter().map(|job| &job["token"]).collect();
        http.post("/v1/ack", &json!({ "tokens": tokens }))?;
    }
    Ok(late)
}
