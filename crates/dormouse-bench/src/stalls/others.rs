//! The others: put, reserve and ack on a topic of their own, again and again, and how long each
//! call takes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{EndReply, Put, Reserve};
use dormouse_core::topic::TopicName;
use dormouse_disk::engine::Engine;
use serde_json::{Map, Value};

use crate::Result;
use crate::client::{Client, unexpected};
use crate::latency::Latencies;

/// The calls go on for so long after an event: it may leave work behind.
const AFTER: Duration = Duration::from_secs(1);
/// Beyond every step of the clock, so that no lease of the others expires.
const TTR_MS: i64 = 10 * 366 * 24 * 3_600 * 1_000;

/// How long the calls took, by their kind.
#[derive(Default)]
pub(super) struct Times {
    put: Latencies,
    reserve: Latencies,
    ack: Latencies,
}

impl Times {
    /// The slowest call of all.
    pub(super) fn slowest_us(&mut self) -> u64 {
        let kinds = [&mut self.put, &mut self.reserve, &mut self.ack];
        kinds.into_iter().map(|times| times.percentile(100)).max().unwrap_or(0)
    }

    /// Adds the figures, each with this prefix.
    pub(super) fn write(&mut self, prefix: &str, figures: &mut Map<String, Value>) {
        let mut add = |name: &str, value: u64| {
            figures.insert(format!("{prefix}_{name}"), Value::from(value));
        };
        add("slowest_us", self.slowest_us());
        add("rounds", self.ack.len() as u64);
        let kinds =
            [("put", &mut self.put), ("reserve", &mut self.reserve), ("ack", &mut self.ack)];
        for (kind, times) in kinds {
            for (name, percent) in [("p50", 50), ("p99", 99), ("max", 100)] {
                add(&format!("{kind}_{name}_us"), times.percentile(percent));
            }
        }
    }
}

/// Calls for some time while nothing else happens.
pub(super) fn call_for(engine: &Engine, time: Duration) -> Result<Times> {
    let (began, mut times) = (Instant::now(), Times::default());
    call_while(engine, || began.elapsed() < time, &mut times)?;
    Ok(times)
}

/// Calls while the event takes place, and a little longer.
pub(super) fn call_during<T>(
    engine: &Engine,
    event: impl FnOnce() -> Result<T>,
) -> Result<(T, Times)> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let calls = scope.spawn(|| {
            let mut times = Times::default();
            call_while(engine, || !is_over.load(Ordering::Relaxed), &mut times)?;
            let over_at = Instant::now();
            call_while(engine, || over_at.elapsed() < AFTER, &mut times)?;
            Result::Ok(times)
        });
        let done = event();
        is_over.store(true, Ordering::Relaxed);
        let times = calls.join().unwrap_or_else(|_| Err("a caller panicked".into()));
        // If both failed, the event says more.
        Ok((done?, times?))
    })
}

fn call_while(engine: &Engine, goes_on: impl Fn() -> bool, times: &mut Times) -> Result<()> {
    let (client, topic) = (Client::new(engine), TopicName::new("other")?);
    while goes_on() {
        let put = Command::Put(vec![Put::new(topic.clone(), "other")]);
        match timed(&client, put, &mut times.put)? {
            Reply::Put(puts) if puts.iter().all(std::result::Result::is_ok) => {}
            other => return Err(unexpected("the put of the other topic", &other)),
        }
        let topics = vec![topic.clone()];
        let reserve = Reserve { topics, max: 1, wait_ms: 0, ttr_ms: Some(TTR_MS), session: None };
        let token = match timed(&client, Command::Reserve(reserve), &mut times.reserve)? {
            Reply::Jobs(jobs) if jobs.len() == 1 => jobs[0].token,
            other => return Err(unexpected("the reserve of the other topic", &other)),
        };
        match timed(&client, Command::Ack(vec![token]), &mut times.ack)? {
            Reply::Ended(ended) if ended == [Ok(EndReply::Done)] => {}
            other => return Err(unexpected("the ack of the other topic", &other)),
        }
    }
    Ok(())
}

fn timed(client: &Client, command: Command, times: &mut Latencies) -> Result<Reply> {
    let called = Instant::now();
    let reply = client.call(command)?;
    times.add(called.elapsed());
    Ok(reply)
}
