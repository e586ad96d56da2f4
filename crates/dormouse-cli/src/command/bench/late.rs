//! Phase late: how long after its due time a job reaches a waiting client.
//!
//! The due time is the job's `due_at`, the arrival is read from this process's wall clock when the
//! whole answer is there: both are the same clock only on the same machine.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::clock;
use super::conn::Conn;
use super::consume::AckRequest;
use super::load::{Done, Load, odd_item};
use super::plan::Plan;
use super::request::{NDJSON, PutRequest, Request};
use super::scan;
use super::times::{Spread, Times};
use crate::exit::Failure;

/// Long enough that the put is durable before, short enough that few jobs are under way.
const DELAYS_MS: Range<u64> = 100..1_000;
/// A job that has not arrived this long after the last one was due is missing.
const MISSING_AFTER: Duration = Duration::from_secs(3);
const WAIT: &str = "20s";
/// Waiting reserves ask for 1 to this many jobs.
const RESERVE_MAX: usize = 10;
/// One in five connections puts, the others wait.
const PRODUCER_SHARE: usize = 5;
const PRODUCERS_MAX: usize = 10;

/// Lateness as this client saw it is in `done.spread`.
pub(super) struct LateFigures {
    pub(super) done: Done,
    /// The `late_ms` of the server, which ends when it leases the job.
    pub(super) server: Option<Spread>,
    /// Jobs that were there before their time: a bug.
    pub(super) early: u64,
    /// Jobs that never arrived.
    pub(super) missing: u64,
}

pub(super) async fn run(plan: &Plan) -> Result<LateFigures, Failure> {
    // Jobs left by an earlier run would spoil the figures.
    plan.purge(&plan.topics.late).await?;
    let producers = (plan.connections / PRODUCER_SHARE).clamp(1, PRODUCERS_MAX);
    let consumers = plan.connections.saturating_sub(producers).max(1);
    let conns = plan.connect(producers + consumers).await?;
    let late = Arc::new(Late {
        load: Load::start("late", plan.time, u64::MAX, &plan.stop),
        over: watch::Sender::new(false),
        put: AtomicU64::new(0),
        early: AtomicU64::new(0),
        producing: AtomicUsize::new(producers),
        server: Mutex::default(),
    });
    let topic = &plan.topics.late;
    let work = |index, conn| {
        let late = Arc::clone(&late);
        let pace = Pace::new(index, producers, plan);
        let jobs = plan.put_request(topic, NDJSON, DELAYS_MS, index);
        let max = index % RESERVE_MAX + 1;
        let reserve = format!("{{\"max\":{max},\"wait\":\"{WAIT}\"}}");
        let reserve = plan.reserve_request(topic, &reserve);
        let ack = AckRequest::new(plan, topic);
        async move {
            if index < producers {
                late.produce(conn, jobs, pace).await;
            } else {
                late.consume(conn, reserve, ack).await;
            }
        }
    };
    let mut done = late.load.run(conns, work).await;
    // The rate is that of the puts: the last jobs become due after them.
    done.seconds = done.seconds.min(plan.time.as_secs_f64());
    let mut server = late.server.lock().unwrap_or_else(PoisonError::into_inner);
    let missing = late.put.load(Ordering::Relaxed).saturating_sub(done.jobs);
    Ok(LateFigures {
        server: server.spread(),
        early: late.early.load(Ordering::Relaxed),
        missing: if late.load.is_stopped() { 0 } else { missing },
        done,
    })
}

/// When one of several producers puts: all together put at the rate asked for.
#[derive(Clone, Copy)]
struct Pace {
    first: Duration,
    every: Duration,
    batch: usize,
}

impl Pace {
    fn new(index: usize, producers: usize, plan: &Plan) -> Pace {
        let rate = plan.rate as f64;
        Pace {
            first: Duration::from_secs_f64(index as f64 / rate),
            every: Duration::from_secs_f64(producers as f64 / rate),
            batch: plan.batch,
        }
    }

    /// When the n-th job is to be put, from the beginning.
    fn at(&self, n: u64) -> Duration {
        self.first + self.every.mul_f64(n as f64)
    }

    /// How many jobs are to be put by then.
    fn count_by(&self, time: Duration) -> u64 {
        match time.checked_sub(self.first) {
            Some(since) => (since.as_secs_f64() / self.every.as_secs_f64()) as u64 + 1,
            None => 0,
        }
    }
}

/// Shared by producers and consumers.
struct Late {
    load: Arc<Load>,
    /// Becomes true when nothing is to be waited for any more.
    over: watch::Sender<bool>,
    put: AtomicU64,
    early: AtomicU64,
    producing: AtomicUsize,
    server: Mutex<Times>,
}

impl Late {
    /// Puts at its pace, whatever the answers: delayed puts are sent together.
    async fn produce(&self, mut conn: Conn, mut jobs: PutRequest, pace: Pace) {
        let mut sent = 0;
        while self.load.goes_on() {
            let wanted = pace.count_by(clock::now() - self.load.began).saturating_sub(sent);
            if wanted == 0 {
                tokio::time::sleep_until((self.load.began + pace.at(sent)).into()).await;
                continue;
            }
            let count = wanted.min(pace.batch as u64);
            sent += count;
            match conn.call(jobs.renew(count as usize)).await {
                Ok(answer) if answer.is_success() => {
                    let created = scan::CREATED.count(answer.body);
                    self.put.fetch_add(created, Ordering::Relaxed);
                    if created != count {
                        self.load.note(odd_item(answer.body, "created"));
                    }
                }
                other => self.load.trouble(other).await,
            }
        }
        if self.producing.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.end_if_all_came();
            let last_due = Duration::from_millis(DELAYS_MS.end);
            let mut over = self.over.subscribe();
            // In time or not: then it is over.
            let _ =
                tokio::time::timeout(last_due + MISSING_AFTER, over.wait_for(|over| *over)).await;
            self.over.send_replace(true);
        }
    }

    fn end_if_all_came(&self) {
        let put = self.put.load(Ordering::Relaxed);
        let all_came = self.load.jobs() >= put || self.load.is_stopped();
        if self.producing.load(Ordering::Relaxed) == 0 && all_came {
            self.over.send_replace(true);
        }
    }

    async fn consume(&self, mut conn: Conn, reserve: Request, mut ack: AckRequest) {
        let mut over = self.over.subscribe();
        loop {
            let answer = tokio::select! {
                answer = conn.call(reserve.bytes()) => answer,
                _ = over.wait_for(|over| *over) => return,
            };
            let now_us = clock::wall_us();
            match answer {
                Ok(answer) if answer.is_success() => {
                    self.take(answer.body, now_us);
                    ack.fill(scan::jobs_part(answer.body), false);
                }
                other => {
                    self.load.trouble(other).await;
                    continue;
                }
            }
            if ack.count() == 0 {
                continue;
            }
            match conn.call(ack.bytes()).await {
                Ok(answer) if answer.is_success() => {
                    if scan::DONE.count(answer.body) != ack.count() {
                        self.load.note(odd_item(answer.body, "done"));
                    }
                }
                other => self.load.trouble(other).await,
            }
            self.end_if_all_came();
        }
    }

    /// Takes down how late each job is.
    fn take(&self, body: &[u8], now_us: u64) {
        for due_at in scan::DUE_AT.values(body) {
            let Some(due_us) = instant_us(due_at) else {
                let text = String::from_utf8_lossy(due_at);
                self.load.note(format!("due_at is not an instant: {text}"));
                continue;
            };
            self.early.fetch_add(u64::from(now_us < due_us), Ordering::Relaxed);
            self.load.arrived(now_us.saturating_sub(due_us));
        }
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        for late_ms in scan::LATE_MS.values(body) {
            match str::from_utf8(late_ms).ok().and_then(|text| text.parse::<u64>().ok()) {
                Some(late_ms) => server.add_us(late_ms * 1_000),
                None => self.load.note("late_ms is not a number"),
            }
        }
    }
}

/// An instant as the server writes it, in microseconds since 1970.
fn instant_us(text: &[u8]) -> Option<u64> {
    let instant: jiff::Timestamp = str::from_utf8(text).ok()?.parse().ok()?;
    u64::try_from(instant.as_microsecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read() {
        let check = |text: &str, expected| assert_eq!(instant_us(text.as_bytes()), expected);
        check("1970-01-01T00:00:01.234Z", Some(1_234_000));
        check("2027-01-01T08:00:00.000Z", Some(1_798_790_400_000_000));
        check("soon", None);
    }

    #[test]
    fn producers_together_keep_the_rate() {
        let ms = Duration::from_millis;
        let pace = |index| Pace { first: ms(index), every: ms(10), batch: 500 };
        let count = |time_us| -> u64 {
            (0..10).map(|index| pace(index).count_by(Duration::from_micros(time_us))).sum()
        };
        assert_eq!((count(0), count(500), count(1_000)), (1, 1, 2));
        assert_eq!((count(9_999), count(99_500)), (10, 100));
        assert_eq!(pace(3).at(2), ms(23));
        assert_eq!(pace(3).count_by(ms(23)), 3);
    }
}
