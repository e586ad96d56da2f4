//! The herd: a great many jobs come due in one millisecond on a topic with a slow consumer. What
//! matters is how another topic fares meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{LeasedJob, Put};
use dormouse_core::topic::TopicName;
use dormouse_disk::engine::{Engine, Options};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::child::{self, Task};
use crate::client::{Client, reserve, unexpected};
use crate::late::{Consumer, RESERVE_MAX, check_put};
use crate::latency::Latencies;
use crate::pace::{Schedule, sleep_until, wall_us};
use crate::plan::{Noise, Plan};
use crate::progress::Progress;
use crate::rss;

/// The other topic gets one job each millisecond, due after this delay.
const TIME_MS: u64 = 10_000;
const OTHER_DELAY_MS: u64 = 50;
/// Time to put the herd before it is due.
const PUT_PER_MS: u64 = 50;
const SLOW: Duration = Duration::from_millis(1);
const WAIT_MS: i64 = 60_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HerdFigures {
    /// The worse of the next two.
    pub(crate) other_p99_us: u64,
    pub(crate) other_put_p99_us: u64,
    pub(crate) other_late_p99_us: u64,
    /// From the instant the herd was due to its first job in the consumer's hands.
    pub(crate) herd_first_us: u64,
    pub(crate) herd_taken: u64,
    pub(crate) rss_herd_mib: f64,
}

pub(crate) fn run(task: &Task) -> Result<()> {
    let plan = &task.plan;
    let engine = Engine::open(&task.data, Options::default())?;
    let herd = TopicName::new("herd")?;
    let other = TopicName::new("other")?;
    let time_to_put = Duration::from_millis(2_000 + plan.herd_jobs / PUT_PER_MS);
    let schedule = Schedule::begin_in(time_to_put);
    put_herd(&Client::new(&engine), &herd, plan, schedule.wall_ms)?;
    if Instant::now() > schedule.instant(0) {
        return Err(format!("the herd could not be put within {time_to_put:?}").into());
    }

    let enough = Arc::new(AtomicBool::new(false));
    let slow = {
        let (client, herd, enough) = (Client::new(&engine), herd.clone(), Arc::clone(&enough));
        thread::spawn(move || consume_slowly(&client, &herd, schedule.wall_ms, &enough))
    };
    let producer = {
        let (client, topic) = (Client::new(&engine), other.clone());
        let noise = Noise::new(plan.body, plan.seed + 4);
        thread::spawn(move || produce(&client, &topic, noise, schedule))
    };
    let mut consumer = Consumer::new(Client::new(&engine), other, RESERVE_MAX);
    sleep_until(schedule.instant(0));
    consumer.consume(TIME_MS, "herd, the other topic")?;
    let mut puts = producer.join().map_err(|_| "the producer panicked")??;
    enough.store(true, Ordering::Relaxed);
    let (herd_first_us, herd_taken) = slow.join().map_err(|_| "the slow consumer panicked")??;
    purge(&Client::new(&engine), &herd, plan.herd_jobs - herd_taken)?;
    let (put_us, late_us) = (puts.percentile(99), consumer.late.percentile(99));
    child::report(&HerdFigures {
        other_p99_us: put_us.max(late_us),
        other_put_p99_us: put_us,
        other_late_p99_us: late_us,
        herd_first_us,
        herd_taken,
        rss_herd_mib: rss::peak_mib()?,
    })?;
    if consumer.early > 0 {
        return Err(format!("{} jobs were handed out early", consumer.early).into());
    }
    Ok(engine.close()?)
}

fn put_herd(client: &Client, topic: &TopicName, plan: &Plan, due_ms: u64) -> Result<()> {
    let mut noise = Noise::new(plan.body, plan.seed + 3);
    let mut progress = Progress::new("herd, puts", plan.herd_jobs);
    let (mut sent, mut answered) = (0, 0);
    while answered < plan.herd_jobs {
        while sent < plan.herd_jobs && sent - answered < (plan.window() * plan.batch) as u64 {
            let end = plan.herd_jobs.min(sent + plan.batch as u64);
            let put = |number| Put {
                at_ms: Some(due_ms as i64),
                ..Put::new(topic.clone(), noise.body(number))
            };
            client.send(Command::Put((sent..end).map(put).collect()))?;
            sent = end;
        }
        answered += check_put(&client.receive()?)?;
        progress.at(answered);
    }
    progress.end(answered);
    Ok(())
}

/// One job each millisecond to the other topic; gives how long each put took from its scheduled
/// time to its answer.
fn produce(
    client: &Client,
    topic: &TopicName,
    mut noise: Noise,
    schedule: Schedule,
) -> Result<Latencies> {
    let mut times = Latencies::default();
    let mut scheduled = std::collections::VecDeque::new();
    let mut take = |scheduled: &mut std::collections::VecDeque<_>, answer| {
        check_put(&answer)?;
        let at = scheduled.iter().position(|(ticket, _)| *ticket == answer.ticket);
        let (_, from) = at.and_then(|at| scheduled.remove(at)).ok_or("a put was answered twice")?;
        times.add(answer.at.saturating_duration_since(from));
        Result::Ok(())
    };
    for ms in 0..TIME_MS {
        sleep_until(schedule.instant(ms));
        let due_ms = (schedule.wall_ms + ms + OTHER_DELAY_MS) as i64;
        let put = Put { at_ms: Some(due_ms), ..Put::new(topic.clone(), noise.body(ms)) };
        let ticket = client.send(Command::Put(vec![put]))?;
        scheduled.push_back((ticket, schedule.instant(ms)));
        while let Some(answer) = client.receive_now()? {
            take(&mut scheduled, answer)?;
        }
    }
    while !scheduled.is_empty() {
        let answer = client.receive()?;
        take(&mut scheduled, answer)?;
    }
    Ok(times)
}

/// Takes one job, acks it, rests; returns when the first arrived and how many there were.
fn consume_slowly(
    client: &Client,
    topic: &TopicName,
    due_ms: u64,
    enough: &AtomicBool,
) -> Result<(u64, u64)> {
    let (mut first_us, mut taken) = (0, 0);
    while !enough.load(Ordering::Relaxed) {
        let jobs: Vec<LeasedJob> = match client.call(reserve(vec![topic.clone()], 1, WAIT_MS))? {
            Reply::Jobs(jobs) => jobs,
            other => return Err(unexpected("reserve", &other)),
        };
        if taken == 0 {
            let (now_us, due_us) = (wall_us(), due_ms * 1_000);
            first_us = now_us.checked_sub(due_us).ok_or("the herd was handed out early")?;
        }
        taken += jobs.len() as u64;
        client.call(Command::Ack(jobs.iter().map(|job| job.token).collect()))?;
        thread::sleep(SLOW);
    }
    Ok((first_us, taken))
}

fn purge(client: &Client, topic: &TopicName, expected: u64) -> Result<()> {
    match client.call(Command::Purge(topic.clone().into()))? {
        Reply::Count(count) if count == expected => Ok(()),
        other => Err(unexpected(&format!("purge of {expected} jobs"), &other)),
    }
}
