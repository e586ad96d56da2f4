//! The duel: many concurrent callers, one job per call, each waiting for its answer before the
//! next. The contenders take turns on the same Redis.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use dormouse::Queue;
use tokio::runtime::Runtime;

use super::rig::{Rig, Spent, median};
use super::table::short;
use super::zset_scripts::{Scripts, ZsetCaller};
use super::{Findings, RedisPlan};
use crate::Result;
use crate::plan::Noise;
use crate::progress::note;

const TOPIC: &str = "duel";
const BAR: f64 = 1.5;

/// The library, or the scripts, in the hands of one caller.
#[derive(Clone)]
enum Caller {
    Dormouse(Queue),
    Zset(ZsetCaller),
}

impl Caller {
    async fn put(&mut self, number: u64, body: &Bytes) -> Result<()> {
        match self {
            Caller::Dormouse(queue) => {
                queue.put(TOPIC, body.clone()).await?;
                Ok(())
            }
            Caller::Zset(caller) => caller.put(number, body).await,
        }
    }

    /// Takes a job and is done with it: two calls.
    async fn consume(&mut self) -> Result<()> {
        match self {
            Caller::Dormouse(queue) => {
                let job = queue.reserve_one(TOPIC).await?;
                job.ok_or("a job that is due is missing")?.ack().await?;
                Ok(())
            }
            Caller::Zset(caller) => caller.consume().await,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Put,
    Consume,
}

/// A contender and what it has achieved.
struct Contender {
    name: &'static str,
    callers: Vec<Caller>,
    puts: Vec<Turn>,
    consumed: Vec<Turn>,
}

/// One turn: jobs per second, and what was spent per job in microseconds.
struct Turn {
    per_s: f64,
    redis_us: f64,
    script_us: f64,
    own_us: f64,
    jobs_per_script: f64,
}

pub(super) fn run(rig: &Rig, plan: &RedisPlan, found: &mut Findings) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut contenders = runtime.block_on(enter(rig, plan))?;
    let mut noise = Noise::new(plan.body, plan.seed);
    let bodies: Arc<Vec<Bytes>> = Arc::new((0..1_000).map(|number| noise.body(number)).collect());
    // The first calls open connections and load scripts.
    for contender in &contenders {
        turn(rig, &runtime, contender, &bodies, plan.callers, Work::Put)?;
        turn(rig, &runtime, contender, &bodies, plan.callers, Work::Consume)?;
    }
    for round in 1..=plan.rounds {
        for contender in &mut contenders {
            let put = turn(rig, &runtime, contender, &bodies, plan.duel_jobs, Work::Put)?;
            let consumed = turn(rig, &runtime, contender, &bodies, plan.duel_jobs, Work::Consume)?;
            let (put_per_s, consumed_per_s) = (put.per_s, consumed.per_s);
            let name = contender.name;
            note(&format!(
                "duel {round}: {name}: put {put_per_s:.0}/s, consume {consumed_per_s:.0}/s"
            ));
            contender.puts.push(put);
            contender.consumed.push(consumed);
        }
    }
    report(&contenders, plan, found)
}

async fn enter(rig: &Rig, plan: &RedisPlan) -> Result<Vec<Contender>> {
    let url = rig.server.url();
    let scripts = Scripts::load(&url)?;
    let callers = usize::try_from(plan.callers)?;
    let one = ZsetCaller::connect(&url, &scripts).await?;
    let mut separate = Vec::new();
    for _ in 0..callers {
        separate.push(Caller::Zset(ZsetCaller::connect(&url, &scripts).await?));
    }
    let contender =
        |name, callers| Contender { name, callers, puts: Vec::new(), consumed: Vec::new() };
    Ok(vec![
        contender("dormouse", vec![Caller::Dormouse(rig.queue()); callers]),
        contender("ZSET scripts, one connection", vec![Caller::Zset(one); callers]),
        contender("ZSET scripts, a connection each", separate),
    ])
}

fn turn(
    rig: &Rig,
    runtime: &Runtime,
    contender: &Contender,
    bodies: &Arc<Vec<Bytes>>,
    jobs: u64,
    work: Work,
) -> Result<Turn> {
    let callers = contender.callers.len() as u64;
    let each = jobs / callers;
    let (before, started) = (rig.spent(), Instant::now());
    runtime.block_on(async {
        let start = |(index, caller): (usize, &Caller)| {
            let (bodies, first) = (Arc::clone(bodies), index as u64 * each);
            tokio::spawn(call(caller.clone(), bodies, first..first + each, work))
        };
        let running: Vec<_> = contender.callers.iter().enumerate().map(start).collect();
        for caller in running {
            caller.await??;
        }
        Result::Ok(())
    })?;
    let (seconds, done) = (started.elapsed().as_secs_f64(), (each * callers) as f64);
    let Spent { redis, own, in_scripts, scripts } = rig.spent().since(before);
    let per_job = |time: std::time::Duration| time.as_secs_f64() * 1e6 / done;
    Ok(Turn {
        per_s: done / seconds,
        redis_us: per_job(redis),
        script_us: per_job(in_scripts),
        own_us: per_job(own),
        jobs_per_script: done / scripts.max(1) as f64,
    })
}

async fn call(
    mut caller: Caller,
    bodies: Arc<Vec<Bytes>>,
    numbers: std::ops::Range<u64>,
    work: Work,
) -> Result<()> {
    for (number, body) in numbers.zip(bodies.iter().cycle()) {
        match work {
            Work::Put => caller.put(number, body).await?,
            Work::Consume => caller.consume().await?,
        }
    }
    Ok(())
}

fn report(contenders: &[Contender], plan: &RedisPlan, found: &mut Findings) -> Result<()> {
    let [ours, others @ ..] = contenders else { return Err("there is no contender".into()) };
    for other in others {
        compare(ours, other, plan, found)?;
    }
    for contender in contenders {
        let name = contender.name;
        found.table.note(&format!("put: {name}"), spent(&contender.puts));
        found.table.note(&format!("reserve + ack: {name}"), spent(&contender.consumed));
    }
    Ok(())
}

/// Ours to another's.
fn compare(
    ours: &Contender,
    other: &Contender,
    plan: &RedisPlan,
    found: &mut Findings,
) -> Result<()> {
    let works =
        [("put", &ours.puts, &other.puts), ("reserve + ack", &ours.consumed, &other.consumed)];
    for (work, ours, others) in works {
        let [rate, other_rate] = [ours, others].map(|turns| middle(turns, |turn| turn.per_s));
        let ratio = ratio(ours, others);
        let measure = format!("{work}, {} callers, to {}", plan.callers, other.name);
        let rates = format!("{} to {} jobs/s", short(rate), short(other_rate));
        found.table.at_least(&measure, BAR, ratio, &rates);
        let key = |figure: &str| plain(&format!("{work} {figure}"));
        found.add(&BTreeMap::from([
            (key("per s"), rate),
            (key(&format!("per s {}", other.name)), other_rate),
            (key(&format!("to {}", other.name)), ratio),
        ]))?;
    }
    Ok(())
}

/// A name as figures have it.
fn plain(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}

/// The median over the rounds of one to the other.
fn ratio(ours: &[Turn], others: &[Turn]) -> f64 {
    median(ours.iter().zip(others).map(|(ours, other)| ours.per_s / other.per_s).collect())
}

fn middle(turns: &[Turn], figure: impl Fn(&Turn) -> f64) -> f64 {
    median(turns.iter().map(figure).collect())
}

fn spent(turns: &[Turn]) -> String {
    format!(
        "{} jobs/s, {:.1} jobs a script; per job Redis' processor {:.1} us, of it in scripts \
         {:.1} us, ours {:.1} us",
        short(middle(turns, |turn| turn.per_s)),
        middle(turns, |turn| turn.jobs_per_script),
        middle(turns, |turn| turn.redis_us),
        middle(turns, |turn| turn.script_us),
        middle(turns, |turn| turn.own_us),
    )
}
