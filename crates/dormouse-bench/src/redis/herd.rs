//! The herd: a million jobs due in the same millisecond, consumed while others are put.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{EndReply, LeasedJob, Put};
use dormouse_core::topic::TopicName;
use dormouse_redis::limits::BATCH_JOBS_MAX;
use serde::Serialize;

use super::fill::fill;
use super::memory::Backlog;
use super::rig::{Rig, SCRIPT_MICROS_MAX};
use super::zset_scripts::wall_ms;
use super::{Findings, RedisPlan, verbs};
use crate::Result;
use crate::client::{Client, reserve, unexpected};
use crate::late::check_put;
use crate::pace::sleep_until;
use crate::plan::Noise;
use crate::progress::Progress;

/// The fill is done by then, or goes on when they are due: it is one millisecond anyhow.
const LEAD_MS: u64 = 20_000;
const CONSUMERS: usize = 4;
const RESERVE_MAX: usize = 100;
const WAIT_MS: i64 = 10_000;
/// Reserves and acks whose processor time is measured, one at a time.
const MEASURED: u64 = 500;

#[derive(Serialize)]
struct HerdFigures {
    herd_slowest_script_cpu_us: u64,
    herd_slowest_script_us: u64,
    herd_scripts_over_5_ms: usize,
    herd_scripts_over_1_ms: usize,
    herd_scripts: u64,
    herd_consume_per_s: f64,
}

pub(super) fn run(rig: &Rig, plan: &RedisPlan, found: &mut Findings) -> Result<()> {
    let topic = TopicName::new("herd")?;
    let (due_ms, mut noise) = (wall_ms() + LEAD_MS, Noise::new(plan.body, plan.seed));
    rig.server.reset_stats();
    let ids = fill(&rig.client(), &topic, plan.jobs, &mut noise, || due_ms)?;
    verbs::looks(rig, plan, &Backlog { topic: topic.clone(), ids }, "one ms", found)?;
    rig.server.reset_stats();
    thread::sleep(Duration::from_millis(due_ms.saturating_sub(wall_ms())));
    let (slowest_cpu, taken) = slowest_by_cpu(rig, &topic, MEASURED.min(plan.jobs / 512))?;
    let per_s = consume_all(rig, plan, &topic, plan.jobs - taken)?;
    let slow = rig.slow_scripts();
    let over = slow.iter().filter(|script| script.micros > SCRIPT_MICROS_MAX).count();
    let figures = HerdFigures {
        herd_slowest_script_cpu_us: u64::try_from(slowest_cpu.as_micros())?,
        herd_slowest_script_us: slow.first().map_or(0, |script| script.micros),
        herd_scripts_over_5_ms: over,
        herd_scripts_over_1_ms: slow.len(),
        herd_scripts: rig.server.scripts_run(),
        herd_consume_per_s: per_s,
    };
    let more = format!(
        "{} us, waiting for a processor included, by {}; {over} of {} scripts over 5 ms, {} over \
         1 ms; consumed at {per_s:.0} jobs/s",
        figures.herd_slowest_script_us,
        slow.first().map_or("none", |script| script.verb.as_str()),
        figures.herd_scripts,
        slow.len()
    );
    let measure = format!("{} jobs due in one ms: slowest script, CPU us", plan.jobs);
    let slowest = figures.herd_slowest_script_cpu_us as f64;
    found.table.at_most(&measure, SCRIPT_MICROS_MAX as f64, slowest, &more);
    found.add(&figures)
}

/// The most processor time of Redis for one script that reserves or acks as many jobs as fit, and
/// the jobs acked. Nothing else is asked meanwhile but the time itself, so it is all the script's,
/// and a little more.
fn slowest_by_cpu(rig: &Rig, topic: &TopicName, rounds: u64) -> Result<(Duration, u64)> {
    let client = rig.client();
    let mut slowest = Duration::ZERO;
    let mut timed = |command| {
        let before = rig.server.cpu();
        let reply = client.call(command);
        slowest = slowest.max(rig.server.cpu().saturating_sub(before));
        reply
    };
    let mut acked = 0;
    for _ in 0..rounds {
        let leased = match timed(reserve(vec![topic.clone()], BATCH_JOBS_MAX, 0))? {
            Reply::Jobs(leased) => leased,
            other => return Err(unexpected("reserve", &other)),
        };
        acked += leased.len() as u64;
        timed(Command::Ack(leased.iter().map(|job| job.token).collect()))?;
    }
    Ok((slowest, acked))
}

/// Jobs per second of several consumers, while a producer puts beside them.
fn consume_all(rig: &Rig, plan: &RedisPlan, topic: &TopicName, jobs: u64) -> Result<f64> {
    let over = Arc::new(AtomicBool::new(false));
    let producer = {
        let (client, topic, over) = (rig.client(), topic.clone(), Arc::clone(&over));
        let noise = Noise::new(plan.body, plan.seed + 3);
        thread::spawn(move || put_beside(&client, &topic, noise, &over))
    };
    let (acked, started) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let consumers: Vec<_> = (0..CONSUMERS)
        .map(|_| {
            let (client, topic, acked) = (rig.client(), topic.clone(), Arc::clone(&acked));
            thread::spawn(move || consume(&client, &topic, &acked, jobs))
        })
        .collect();
    let mut progress = Progress::new("herd", jobs);
    while acked.load(Ordering::Relaxed) < jobs && !consumers.iter().all(|c| c.is_finished()) {
        thread::sleep(Duration::from_millis(50));
        progress.at(acked.load(Ordering::Relaxed));
    }
    let per_s = jobs as f64 / started.elapsed().as_secs_f64();
    over.store(true, Ordering::Relaxed);
    for consumer in consumers {
        consumer.join().map_err(|_| "a consumer panicked")??;
    }
    progress.end(acked.load(Ordering::Relaxed));
    producer.join().map_err(|_| "the producer panicked")??;
    Ok(per_s)
}

/// A job per millisecond, due long after.
fn put_beside(
    client: &Client,
    topic: &TopicName,
    mut noise: Noise,
    over: &AtomicBool,
) -> Result<()> {
    let mut next = Instant::now();
    let mut number = 0;
    while !over.load(Ordering::Relaxed) {
        let put = Put { delay_ms: Some(3_600_000), ..Put::new(topic.clone(), noise.body(number)) };
        client.send(Command::Put(vec![put]))?;
        check_put(&client.receive()?)?;
        number += 1;
        next += Duration::from_millis(1);
        sleep_until(next);
    }
    Ok(())
}

/// Acks and reserves in one batch until all consumers together have acked this many.
fn consume(client: &Client, topic: &TopicName, acked: &AtomicU64, jobs: u64) -> Result<()> {
    let next = || reserve(vec![topic.clone()], RESERVE_MAX, WAIT_MS);
    client.send(next())?;
    loop {
        match client.receive()?.reply {
            Reply::Jobs(leased) if leased.is_empty() => return Ok(()),
            Reply::Jobs(leased) => {
                let tokens = |job: &LeasedJob| job.token;
                let ack = Command::Ack(leased.iter().map(tokens).collect());
                client.send_both(ack, next())?;
            }
            Reply::Ended(ended) if ended.iter().all(|item| *item == Ok(EndReply::Done)) => {
                let before = acked.fetch_add(ended.len() as u64, Ordering::Relaxed);
                if before + ended.len() as u64 >= jobs {
                    return Ok(());
                }
            }
            other => return Err(unexpected("reserve or ack", &other)),
        }
    }
}
