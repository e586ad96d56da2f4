//! The stage of every event: an engine with a clock that is moved by hand, the jobs of its
//! preparation, and the figures before and during the event.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::JobId;
use dormouse_core::meter::MeterValue;
use dormouse_core::op::{Cancel, Put, Stats, Target, TopicStats};
use dormouse_core::topic::TopicName;
use dormouse_disk::clock::VirtualClock;
use dormouse_disk::engine::{Durability, Engine, Options};
use serde_json::{Map, Value};
use tempfile::TempDir;

use super::StallsPlan;
use super::others::{self, Times};
use crate::client::{Client, reserve, unexpected};
use crate::progress::Progress;
use crate::{Result, report, rss, run};

/// How long the others call before anything else happens.
const QUIET: Duration = Duration::from_secs(2);
const RELAXED: Durability = Durability::Relaxed { ms: 50 };
/// Requests of the preparation on their way at once.
const IN_FLIGHT: usize = 8;
const POLL_EVERY: Duration = Duration::from_millis(1);
/// A condition that does not come true by then never will.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// No job of the preparation is due before its event.
pub(super) const DELAY: Duration = Duration::from_secs(3_600);

pub(super) struct Stage {
    pub(super) engine: Engine,
    pub(super) clock: VirtualClock,
    batch: u64,
    body: usize,
    settle: bool,
    /// The figures of the others on the empty engine.
    quiet: Map<String, Value>,
    quiet_slowest_us: u64,
    /// Goes last.
    dir: TempDir,
}

impl Stage {
    /// Opens an engine and measures the others while it is quiet.
    pub(super) fn open(plan: &StallsPlan) -> Result<Stage> {
        let parent = run::parent_on_disk(plan.dir.as_deref())?;
        let dir = tempfile::Builder::new().prefix("dormouse-stalls-").tempdir_in(parent)?;
        let clock = VirtualClock::new();
        let durability = if plan.relaxed { RELAXED } else { Durability::Synced };
        let options = Options { clock: Arc::new(clock.clone()), durability, ..Options::default() };
        let engine = Engine::open(dir.path(), options)?;
        let (mut times, mut quiet) = (others::call_for(&engine, QUIET)?, Map::new());
        times.write("quiet", &mut quiet);
        Ok(Stage {
            engine,
            clock,
            batch: plan.batch as u64,
            body: plan.body,
            settle: plan.settle,
            quiet,
            quiet_slowest_us: times.slowest_us(),
            dir,
        })
    }

    pub(super) fn close(&self) -> Result<()> {
        Ok(self.engine.close()?)
    }

    /// Opens what was closed and prints how long that took, up to the first answer.
    pub(super) fn reopen(&self) -> Result<()> {
        let (disk_bytes, _) = rss::disk_use(self.dir.path())?;
        let options = Options { clock: Arc::new(self.clock.clone()), ..Options::default() };
        let began = Instant::now();
        let engine = Engine::open(self.dir.path(), options)?;
        let stats = Client::new(&engine).call(Command::Stats(Stats { topic: None }))?;
        let reopen_ms = began.elapsed().as_secs_f64() * 1e3;
        let Reply::Stats(stats) = stats else { return Err(unexpected("stats", &stats)) };
        let mut figures = Map::new();
        for (name, value) in [
            ("event", Value::from("reopen")),
            ("leased", Value::from(stats.counts.leased)),
            ("done", Value::from(stats.counts.done)),
            ("topics", Value::from(stats.topics)),
            ("disk_bytes", Value::from(disk_bytes)),
            ("reopen_ms", Value::from(reopen_ms)),
            ("rss_mib", Value::from(rss::peak_mib()?)),
        ] {
            figures.insert(name.to_owned(), value);
        }
        report::print(Value::Object(figures))?;
        Ok(engine.close()?)
    }

    pub(super) fn client(&self) -> Client {
        Client::new(&self.engine)
    }

    /// Lets an event take place and prints its line: what it tells of itself, and the others
    /// before and meanwhile.
    pub(super) fn measure(
        &self,
        name: &str,
        count: u64,
        event: impl FnOnce() -> Result<Map<String, Value>>,
    ) -> Result<()> {
        if self.settle {
            rss::wait_until_quiet()?;
        }
        let before = (self.meter("flushes_total")?, self.meter("merges_total")?);
        let timed = || {
            let began = Instant::now();
            let told = event()?;
            Ok((told, began.elapsed()))
        };
        let ((told, took), mut during) = others::call_during(&self.engine, timed)?;
        let flushes = self.meter("flushes_total")? - before.0;
        let merges = self.meter("merges_total")? - before.1;
        let slowest_ratio = during.slowest_us() as f64 / self.quiet_slowest_us.max(1) as f64;
        let mut figures = Map::new();
        for (name, value) in [
            ("event", Value::from(name)),
            ("count", Value::from(count)),
            ("body", Value::from(self.body)),
            ("took_ms", Value::from(took.as_secs_f64() * 1e3)),
            ("flushes", Value::from(flushes)),
            ("merges", Value::from(merges)),
            ("slowest_ratio", Value::from(slowest_ratio)),
            ("rss_mib", Value::from(rss::peak_mib()?)),
        ] {
            figures.insert(name.to_owned(), value);
        }
        figures.extend(told);
        self.write(&mut during, &mut figures);
        report::print(Value::Object(figures))
    }

    fn write(&self, during: &mut Times, figures: &mut Map<String, Value>) {
        figures.extend(self.quiet.clone());
        during.write("other", figures);
    }

    /// A counter of the engine.
    pub(super) fn meter(&self, name: &str) -> Result<u64> {
        let meters = self.engine.meters();
        match meters.iter().find(|meter| meter.name == name).map(|meter| &meter.value) {
            Some(MeterValue::Counter(value) | MeterValue::Gauge(value)) => Ok(*value),
            _ => Err(format!("the engine has no counter {name}").into()),
        }
    }

    /// The counts of a topic, or of all.
    pub(super) fn stats(&self, topic: Option<&TopicName>) -> Result<TopicStats> {
        match self.client().call(Command::Stats(Stats { topic: topic.cloned() }))? {
            Reply::Stats(stats) => Ok(*stats),
            other => Err(unexpected("stats", &other)),
        }
    }

    /// Looks again and again until it is so.
    pub(super) fn wait_until(
        &self,
        what: &str,
        is_so: impl Fn() -> Result<bool>,
    ) -> Result<Duration> {
        let began = Instant::now();
        while !is_so()? {
            if began.elapsed() > WAIT_MAX {
                return Err(format!("{what}: not so after {WAIT_MAX:?}").into());
            }
            thread::sleep(POLL_EVERY);
        }
        Ok(began.elapsed())
    }

    /// Puts numbered jobs, several requests on their way; returns the first one's id. The ids of
    /// the others must follow without a gap, so that nobody has to remember ten million.
    pub(super) fn put(
        &self,
        phase: &'static str,
        count: u64,
        mut job: impl FnMut(u64, Vec<u8>) -> Result<Put>,
    ) -> Result<JobId> {
        let mut first = None;
        let make = |numbers: Range<u64>| {
            let puts = numbers.map(|number| job(number, vec![b'x'; self.body]));
            Ok(Command::Put(puts.collect::<Result<_>>()?))
        };
        self.send_all(phase, count, make, |numbers, reply| {
            let Reply::Put(puts) = &reply else { return Err(unexpected("put", &reply)) };
            for (number, put) in numbers.zip(puts) {
                let id = put.as_ref().map_err(|error| format!("put {number}: {error}"))?.id.0;
                if *first.get_or_insert(id) + number != id {
                    return Err(format!("job {number} has the id {id}: there is a gap").into());
                }
            }
            Ok(())
        })?;
        first.map(JobId).ok_or_else(|| "no job was put".into())
    }

    /// Puts numbered jobs whose ids nobody needs to know.
    pub(super) fn put_each(
        &self,
        phase: &'static str,
        count: u64,
        mut job: impl FnMut(u64, Vec<u8>) -> Result<Put>,
    ) -> Result<()> {
        let make = |numbers: Range<u64>| {
            let puts = numbers.map(|number| job(number, vec![b'x'; self.body]));
            Ok(Command::Put(puts.collect::<Result<_>>()?))
        };
        self.send_all(phase, count, make, |_, reply| match &reply {
            Reply::Put(puts) if puts.iter().all(std::result::Result::is_ok) => Ok(()),
            other => Err(unexpected("put", other)),
        })
    }

    /// Where the store is.
    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Puts jobs that are all due after the usual delay.
    pub(super) fn put_delayed(&self, topic: &TopicName, count: u64) -> Result<JobId> {
        let delay_ms = Some(i64::try_from(DELAY.as_millis())?);
        self.put("put", count, |_, body| Ok(Put { delay_ms, ..Put::new(topic.clone(), body) }))
    }

    /// Cancels jobs that were put in one go.
    pub(super) fn cancel(&self, first: JobId, count: u64) -> Result<()> {
        let cancel = |number| {
            let target = Target::Id(JobId(first.0 + number));
            Cancel { target, unless_leased: false }
        };
        let make = |numbers: Range<u64>| Ok(Command::Cancel(numbers.map(cancel).collect()));
        self.send_all("cancel", count, make, |_, reply| match &reply {
            Reply::Changed(changed) if changed.iter().all(std::result::Result::is_ok) => Ok(()),
            other => Err(unexpected("cancel", other)),
        })
    }

    /// Puts jobs until so many more memtables were written as runs; each of them was frozen with
    /// a checkpoint.
    pub(super) fn pass_checkpoints(&self, checkpoints: u64) -> Result<u64> {
        let (client, topic) = (self.client(), TopicName::new("filler")?);
        let delay_ms = Some(i64::try_from(DELAY.as_millis())?);
        let put = Put { delay_ms, ..Put::new(topic, vec![b'x'; self.body]) };
        let puts = vec![put; usize::try_from(self.batch)?];
        let (enough, mut count) = (self.meter("flushes_total")? + checkpoints, 0);
        while self.meter("flushes_total")? < enough {
            match client.call(Command::Put(puts.clone()))? {
                Reply::Put(puts) if puts.iter().all(std::result::Result::is_ok) => {}
                other => return Err(unexpected("put", &other)),
            }
            count += self.batch;
        }
        Ok(count)
    }

    /// Takes and acks so many jobs of these groups of topics, one group after the other.
    pub(super) fn take_all(&self, groups: &[Vec<TopicName>], count: u64) -> Result<()> {
        let (client, mut taken) = (self.client(), 0);
        let mut progress = Progress::new("take", count);
        for topics in groups {
            loop {
                match client.call(reserve(topics.clone(), usize::try_from(self.batch)?, 0))? {
                    Reply::Jobs(jobs) if jobs.is_empty() => break,
                    Reply::Jobs(jobs) => {
                        taken += jobs.len() as u64;
                        client.call(Command::Ack(jobs.iter().map(|job| job.token).collect()))?;
                    }
                    other => return Err(unexpected("reserve", &other)),
                }
                progress.at(taken);
            }
        }
        progress.end(taken);
        if taken == count {
            Ok(())
        } else {
            Err(format!("{taken} of {count} jobs were taken").into())
        }
    }

    fn send_all(
        &self,
        phase: &'static str,
        count: u64,
        mut make: impl FnMut(Range<u64>) -> Result<Command>,
        mut check: impl FnMut(Range<u64>, Reply) -> Result<()>,
    ) -> Result<()> {
        let (client, mut progress) = (self.client(), Progress::new(phase, count));
        let (mut next, mut answered, mut in_flight) = (0, 0, VecDeque::new());
        while answered < count {
            while next < count && in_flight.len() < IN_FLIGHT {
                let end = count.min(next + self.batch);
                in_flight.push_back((client.send(make(next..end)?)?, next..end));
                next = end;
            }
            let answer = client.receive()?;
            let at = in_flight.iter().position(|(ticket, _)| *ticket == answer.ticket);
            let (_, numbers) =
                at.and_then(|at| in_flight.remove(at)).ok_or("a request was answered twice")?;
            answered += numbers.end - numbers.start;
            check(numbers, answer.reply)?;
            progress.at(answered);
        }
        progress.end(answered);
        Ok(())
    }
}

/// A figure that an event tells of itself.
pub(super) fn told<const N: usize>(figures: [(&str, Value); N]) -> Map<String, Value> {
    figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
