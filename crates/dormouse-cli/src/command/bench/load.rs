//! One load: many connections at once for a given time, and their counts.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::clock;
use super::conn::{Conn, Response};
use super::times::{Spread, Times};
use crate::output;

const PROGRESS_EVERY: Duration = Duration::from_millis(500);
/// A connection that had trouble pauses: a server that refuses is not to be stormed.
const TROUBLE_PAUSE: Duration = Duration::from_millis(100);
/// How long after the end the last answers are waited for.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// The same after an interrupt.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// Becomes true when the user wants no more.
pub(super) type Stop = watch::Receiver<bool>;

/// Errors: their number, and the text of the first.
#[derive(Clone, Debug, Default)]
pub(super) struct Trouble {
    pub(super) count: u64,
    pub(super) first: Option<String>,
}

impl Trouble {
    pub(super) fn add(&mut self, text: impl Into<String>) {
        self.count += 1;
        self.first.get_or_insert_with(|| text.into());
    }

    pub(super) fn merge(&mut self, other: Trouble) {
        self.count += other.count;
        if self.first.is_none() {
            self.first = other.first;
        }
    }
}

/// The result of a load.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    pub(super) jobs: u64,
    pub(super) seconds: f64,
    pub(super) spread: Option<Spread>,
    /// The processor cores that this process kept busy meanwhile.
    pub(super) client_cores: Option<f64>,
    pub(super) trouble: Trouble,
}

impl Done {
    pub(super) fn per_s(&self) -> f64 {
        if self.seconds > 0.0 { self.jobs as f64 / self.seconds } else { 0.0 }
    }
}

/// Shared by the connections.
pub(super) struct Load {
    name: &'static str,
    pub(super) began: Instant,
    until: Instant,
    jobs_max: u64,
    stop: Stop,
    count: Mutex<Count>,
}

#[derive(Default)]
struct Count {
    jobs: u64,
    times: Times,
    last: Option<Instant>,
    trouble: Trouble,
}

impl Load {
    /// Starts now and runs for the given time, or until the given number of jobs is done.
    pub(super) fn start(
        name: &'static str,
        time: Duration,
        jobs_max: u64,
        stop: &Stop,
    ) -> Arc<Load> {
        let began = clock::now();
        let (until, count) = (began + time, Mutex::default());
        Arc::new(Load { name, began, until, jobs_max, stop: stop.clone(), count })
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another request is to be sent.
    pub(super) fn goes_on(&self) -> bool {
        clock::now() < self.until && self.jobs() < self.jobs_max && !self.is_stopped()
    }

    /// Whether the user wants no more.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// The jobs so far.
    pub(super) fn jobs(&self) -> u64 {
        self.count().jobs
    }

    /// Counts the answer to a request for `jobs` jobs sent at `sent`.
    pub(super) fn answered(&self, jobs: u64, sent: Instant) {
        let now = clock::now();
        let mut count = self.count();
        count.jobs += jobs;
        count.times.add(now - sent);
        count.last = Some(now);
    }

    /// Counts a job that arrived `late_us` after its due time.
    pub(super) fn arrived(&self, late_us: u64) {
        let now = clock::now();
        let mut count = self.count();
        count.jobs += 1;
        count.times.add_us(late_us);
        count.last = Some(now);
    }

    /// Notes an answer other than expected, without waiting.
    pub(super) fn note(&self, text: impl Into<String>) {
        self.count().trouble.add(text);
    }

    /// Notes an error, then pauses.
    pub(super) async fn trouble(&self, answer: io::Result<Response<'_>>) {
        self.note(match answer {
            Ok(answer) => problem(&answer),
            Err(error) => error.to_string(),
        });
        tokio::time::sleep(TROUBLE_PAUSE).await;
    }

    /// Lets every connection work until all have ended.
    pub(super) async fn run<W>(&self, conns: Vec<Conn>, work: impl Fn(usize, Conn) -> W) -> Done
    where
        W: Future<Output = ()> + Send + 'static,
    {
        let cpu_s = clock::cpu_s();
        let mut working = JoinSet::new();
        for (index, conn) in conns.into_iter().enumerate() {
            working.spawn(work(index, conn));
        }
        if tokio::time::timeout_at(self.give_up(), self.attend(&mut working)).await.is_err() {
            let text = format!("{} connections waited in vain for an answer", working.len());
            self.note(text);
            working.abort_all();
        }
        self.done(cpu_s)
    }

    fn give_up(&self) -> tokio::time::Instant {
        (self.until + ANSWER_WAIT).into()
    }

    async fn attend(&self, working: &mut JoinSet<()>) {
        let mut stop = self.stop.clone();
        let mut ticks = tokio::time::interval(PROGRESS_EVERY);
        loop {
            tokio::select! {
                joined = working.join_next() => match joined {
                    Some(Ok(())) => {}
                    Some(Err(error)) => self.note(format!("a connection failed: {error}")),
                    None => return,
                },
                _ = ticks.tick() => self.show_progress(false),
                stopped = stop.wait_for(|stop| *stop) => {
                    drop(stopped);
                    let rest = async { while working.join_next().await.is_some() {} };
                    // Connections that still wait for an answer then are abandoned.
                    let _ = tokio::time::timeout(STOP_WAIT, rest).await;
                    working.abort_all();
                    return;
                }
            }
        }
    }

    fn show_progress(&self, done: bool) {
        let seconds = (clock::now() - self.began).as_secs_f64();
        let (name, jobs) = (self.name, self.jobs());
        output::progress(&format!("{name}: {jobs} jobs in {seconds:.1} s"), done);
    }

    fn done(&self, cpu_s: Option<f64>) -> Done {
        self.show_progress(true);
        let whole_s = (clock::now() - self.began).as_secs_f64();
        let busy = |began_s| clock::cpu_s().map(|ended_s| (ended_s - began_s) / whole_s);
        let mut count = self.count();
        let last = count.last.unwrap_or(self.began);
        Done {
            jobs: count.jobs,
            seconds: (last - self.began).as_secs_f64(),
            spread: count.times.spread(),
            client_cores: cpu_s.and_then(busy),
            trouble: std::mem::take(&mut count.trouble),
        }
    }
}

/// The text of an error reply, or its status if there is none.
pub(super) fn problem(answer: &Response<'_>) -> String {
    let status = answer.status;
    let document: serde_json::Value = serde_json::from_slice(answer.body).unwrap_or_default();
    match (document["code"].as_str(), document["detail"].as_str()) {
        (Some(code), Some(detail)) => format!("{status} {code}: {detail}"),
        (Some(code), None) => format!("{status} {code}"),
        _ => format!("status {status}"),
    }
}

/// The first item of a list that is not as expected, in words.
pub(super) fn odd_item(body: &[u8], expected: &str) -> String {
    let document: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let items = document["results"].as_array().cloned().unwrap_or_default();
    match items.iter().find(|item| item["code"] != expected) {
        Some(item) => item.to_string(),
        None => format!("{} results where each was to be {expected}", items.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reply_is_described() {
        let check = |status, body: &[u8], expected: &str| {
            assert_eq!(problem(&Response { status, body }), expected);
        };
        check(503, br#"{"code":"busy","detail":"wait"}"#, "503 busy: wait");
        check(503, br#"{"code":"busy"}"#, "503 busy");
        check(502, b"<html>", "status 502");
    }

    #[test]
    fn the_first_odd_item_is_described() {
        let check = |body: &str, expected: &str| {
            assert_eq!(odd_item(body.as_bytes(), "done"), expected);
        };
        let odd = r#"{"results":[{"code":"done"},{"code":"gone"},{"code":"lease_lost"}]}"#;
        check(odd, r#"{"code":"gone"}"#);
        check(r#"{"results":[{"code":"done"}]}"#, "1 results where each was to be done");
        check("", "0 results where each was to be done");
    }

    #[test]
    fn the_first_trouble_is_kept() {
        let mut trouble = Trouble::default();
        let mut other = Trouble::default();
        other.add("one");
        other.add("two");
        trouble.merge(other);
        trouble.add("three");
        assert_eq!((trouble.count, trouble.first.as_deref()), (3, Some("one")));
    }
}
