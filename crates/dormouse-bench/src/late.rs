//! Lateness: jobs come due at a steady rate to a waiting consumer, while a producer puts the next
//! ones and the consumer acks. Every time is the wall clock's, at which the jobs are due.

use std::thread;
use std::time::Duration;

use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{EndReply, LeasedJob, Put};
use dormouse_core::topic::TopicName;
use dormouse_disk::engine::{Engine, Options};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::child::{self, Task};
use crate::client::{Answered, Client, reserve, unexpected};
use crate::latency::Latencies;
use crate::pace::{Schedule, sleep_until, wall_us};
use crate::plan::Noise;
use crate::progress::Progress;
use crate::rss;

const PER_MS: u64 = 10;
const TIME_MS: u64 = 10_000;
const JOBS: u64 = PER_MS * TIME_MS;
/// A job is put so long before it is due.
const LEAD_MS: u64 = 1_000;
pub(crate) const RESERVE_MAX: usize = 256;
const WAIT_MS: i64 = 10_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LateFigures {
    pub(crate) late_p50_us: u64,
    pub(crate) late_p99_us: u64,
    pub(crate) late_max_us: u64,
    pub(crate) early_count: u64,
    /// How late a thread of the same process wakes that only sleeps, at the same time: what the
    /// computer itself adds.
    pub(crate) sleep_p99_us: u64,
    pub(crate) rss_late_mib: f64,
}

pub(crate) fn run(task: &Task) -> Result<()> {
    let engine = Engine::open(&task.data, Options::default())?;
    let figures = measure(task, &engine)?;
    child::report(&figures)?;
    check_early(&figures)?;
    Ok(engine.close()?)
}

/// A job that came early makes all other figures worthless.
pub(crate) fn check_early(figures: &LateFigures) -> Result<()> {
    match figures.early_count {
        0 => Ok(()),
        count => Err(format!("{count} jobs were handed out early").into()),
    }
}

/// Jobs come due for ten seconds, whatever else the engine does meanwhile.
pub(crate) fn measure(task: &Task, engine: &Engine) -> Result<LateFigures> {
    let topic = TopicName::new("late")?;
    let schedule = Schedule::begin_in(Duration::from_millis(200));
    let producer = {
        let (client, topic, plan) = (Client::new(engine), topic.clone(), task.plan.clone());
        let noise = Noise::new(plan.body, plan.seed + 2);
        thread::spawn(move || produce(&client, &topic, noise, schedule))
    };
    let sleeper = thread::spawn(move || sleep_only(schedule));
    let mut consumer = Consumer::new(Client::new(engine), topic, RESERVE_MAX);
    consumer.consume(JOBS, "late")?;
    producer.join().map_err(|_| "the producer panicked")??;
    let mut sleeps = sleeper.join().map_err(|_| "the sleeper panicked")?;
    let mut late = consumer.late;
    Ok(LateFigures {
        late_p50_us: late.percentile(50),
        late_p99_us: late.percentile(99),
        late_max_us: late.percentile(100),
        early_count: consumer.early,
        sleep_p99_us: sleeps.percentile(99),
        rss_late_mib: rss::peak_mib()?,
    })
}

/// Ten jobs each millisecond, on time whatever the answers.
fn produce(client: &Client, topic: &TopicName, mut noise: Noise, schedule: Schedule) -> Result<()> {
    let mut answered = 0;
    for ms in 0..TIME_MS {
        sleep_until(schedule.instant(ms));
        let due_ms = (schedule.wall_ms + ms + LEAD_MS) as i64;
        let put = |index| Put {
            at_ms: Some(due_ms),
            ..Put::new(topic.clone(), noise.body(ms * PER_MS + index))
        };
        client.send(Command::Put((0..PER_MS).map(put).collect()))?;
        while let Some(answer) = client.receive_now()? {
            answered += check_put(&answer)?;
        }
    }
    while answered < JOBS {
        answered += check_put(&client.receive()?)?;
    }
    Ok(())
}

/// Sleeps to each millisecond in which jobs are due.
fn sleep_only(schedule: Schedule) -> Latencies {
    let mut times = Latencies::default();
    for ms in LEAD_MS..LEAD_MS + TIME_MS {
        sleep_until(schedule.instant(ms));
        times.add(schedule.instant(ms).elapsed());
    }
    times
}

pub(crate) fn check_put(answer: &Answered) -> Result<u64> {
    match &answer.reply {
        Reply::Put(items) if items.iter().all(std::result::Result::is_ok) => Ok(items.len() as u64),
        other => Err(unexpected("put", other)),
    }
}

/// Waits for jobs, takes down how late each is, acks without waiting for the answer.
pub(crate) struct Consumer {
    client: Client,
    topic: TopicName,
    /// Jobs per reserve.
    max: usize,
    pub(crate) late: Latencies,
    pub(crate) early: u64,
    acked: u64,
}

impl Consumer {
    pub(crate) fn new(client: Client, topic: TopicName, max: usize) -> Consumer {
        Consumer { client, topic, max, late: Latencies::default(), early: 0, acked: 0 }
    }

    pub(crate) fn consume(&mut self, jobs: u64, phase: &'static str) -> Result<()> {
        let mut progress = Progress::new(phase, jobs);
        self.client.send(self.reserve())?;
        while self.acked < jobs {
            let answer = self.client.receive()?;
            match answer.reply {
                Reply::Jobs(leased) => self.take(&leased, jobs)?,
                Reply::Ended(ended) if ended.iter().all(|item| *item == Ok(EndReply::Done)) => {
                    self.acked += ended.len() as u64;
                }
                other => return Err(unexpected("reserve or ack", &other)),
            }
            progress.at(self.acked);
        }
        progress.end(self.acked);
        Ok(())
    }

    fn take(&mut self, leased: &[LeasedJob], jobs: u64) -> Result<()> {
        let now_us = wall_us();
        if leased.is_empty() {
            let taken = self.late.len();
            return Err(format!("no job came for {WAIT_MS} ms after {taken} of {jobs}").into());
        }
        for job in leased {
            let due_us = job.due_at * 1_000;
            self.early += u64::from(now_us < due_us);
            self.late.add_us(now_us.saturating_sub(due_us));
        }
        let ack = Command::Ack(leased.iter().map(|job| job.token).collect());
        if (self.late.len() as u64) < jobs {
            self.client.send_both(ack, self.reserve())?;
        } else {
            self.client.send(ack)?;
        }
        Ok(())
    }

    fn reserve(&self) -> Command {
        reserve(vec![self.topic.clone()], self.max, WAIT_MS)
    }
}
