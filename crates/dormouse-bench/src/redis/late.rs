//! Lateness: jobs come due each millisecond to a waiting consumer, beside a backlog. Meanwhile a
//! plain connection asks PING again and again: what the way to Redis and back takes anyhow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dormouse_core::command::Command;
use dormouse_core::op::Put;
use dormouse_core::topic::TopicName;
use serde::Serialize;

use super::rig::Rig;
use super::{Findings, RedisPlan};
use crate::client::Client;
use crate::late::{Consumer, check_put};
use crate::latency::Latencies;
use crate::pace::{Schedule, sleep_until, wall_us};
use crate::plan::Noise;
use crate::{Result, progress};

/// One job per millisecond.
const TIME_MS: u64 = 10_000;
const LEAD_MS: u64 = 1_000;
const RESERVE_MAX: usize = 100;
const PING_EVERY: Duration = Duration::from_millis(2);
/// The lateness that is allowed above a round trip.
const BAR_US: f64 = 5_000.0;

#[derive(Serialize)]
struct LateFigures {
    late_p50_us: u64,
    late_p99_us: u64,
    late_max_us: u64,
    late_p99_less_ping_us: f64,
    early_count: u64,
    ping_p50_us: u64,
    ping_p99_us: u64,
    /// Redis' clock less ours, at the quickest of many looks.
    clock_offset_us: i64,
}

pub(super) fn run(rig: &Rig, plan: &RedisPlan, found: &mut Findings) -> Result<()> {
    let url = rig.server.url();
    let mut plain = redis::Client::open(url)?.get_connection()?;
    let clock_offset_us = clock_offset_us(&mut plain)?;
    let topic = TopicName::new("late")?;
    let schedule = Schedule::begin_in(Duration::from_millis(500));
    let producer = {
        let (client, topic) = (rig.client(), topic.clone());
        let noise = Noise::new(plan.body, plan.seed + 2);
        thread::spawn(move || produce(&client, &topic, noise, schedule))
    };
    let over = Arc::new(AtomicBool::new(false));
    let pinger = {
        let over = Arc::clone(&over);
        thread::spawn(move || ping(&mut plain, &over))
    };
    let mut consumer = Consumer::new(rig.client(), topic, RESERVE_MAX);
    let consumed = consumer.consume(TIME_MS, "late");
    over.store(true, Ordering::Relaxed);
    consumed?;
    producer.join().map_err(|_| "the producer panicked")??;
    let mut pings = pinger.join().map_err(|_| "the pinger panicked")??;
    let mut late = consumer.late;
    let figures = LateFigures {
        late_p50_us: late.percentile(50),
        late_p99_us: late.percentile(99),
        late_max_us: late.percentile(100),
        late_p99_less_ping_us: late.percentile(99) as f64 - pings.percentile(50) as f64,
        early_count: consumer.early,
        ping_p50_us: pings.percentile(50),
        ping_p99_us: pings.percentile(99),
        clock_offset_us,
    };
    report(&figures, found);
    found.add(&figures)
}

fn report(figures: &LateFigures, found: &mut Findings) {
    let LateFigures { late_p50_us, late_p99_us, late_max_us, ping_p50_us, ping_p99_us, .. } =
        figures;
    let more = format!(
        "late p50 {late_p50_us}, p99 {late_p99_us}, max {late_max_us}; ping p50 {ping_p50_us}, p99 \
         {ping_p99_us}; Redis' clock {:+}",
        figures.clock_offset_us
    );
    let measure = "lateness p99 above a PING (p50), 1,000 jobs/s, backlog, us";
    found.table.at_most(measure, BAR_US, figures.late_p99_less_ping_us, &more);
    found.table.at_most("jobs handed out early", 0.0, figures.early_count as f64, "");
}

/// One job each millisecond, on time whatever the answers.
fn produce(client: &Client, topic: &TopicName, mut noise: Noise, schedule: Schedule) -> Result<()> {
    let mut answered = 0;
    for ms in 0..TIME_MS {
        sleep_until(schedule.instant(ms));
        let at_ms = i64::try_from(schedule.wall_ms + ms + LEAD_MS).ok();
        let put = Put { at_ms, ..Put::new(topic.clone(), noise.body(ms)) };
        client.send(Command::Put(vec![put]))?;
        while let Some(answer) = client.receive_now()? {
            answered += check_put(&answer)?;
        }
    }
    while answered < TIME_MS {
        answered += check_put(&client.receive()?)?;
    }
    progress::note("late: all put");
    Ok(())
}

fn ping(plain: &mut redis::Connection, over: &AtomicBool) -> Result<Latencies> {
    let mut times = Latencies::default();
    while !over.load(Ordering::Relaxed) {
        let started = Instant::now();
        redis::cmd("PING").query::<()>(plain)?;
        times.add(started.elapsed());
        thread::sleep(PING_EVERY);
    }
    Ok(times)
}

/// Taken in the middle of the quickest round trip.
fn clock_offset_us(plain: &mut redis::Connection) -> Result<i64> {
    let mut best = (u64::MAX, 0);
    for _ in 0..200 {
        let before_us = wall_us();
        let (seconds, micros): (u64, u64) = redis::cmd("TIME").query(plain)?;
        let took_us = wall_us().saturating_sub(before_us);
        let offset =
            (seconds * 1_000_000 + micros).cast_signed() - (before_us + took_us / 2).cast_signed();
        best = best.min((took_us, offset));
    }
    Ok(best.1)
}
