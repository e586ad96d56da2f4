//! The duel: many concurrent callers, one job per call, each waiting for its answer before the
//! next. The contenders take turns on the same Redis.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use dormouse::Queue;
use serde::Serialize;
use tokio::runtime::Runtime;

use super::rig::{Rig, Spent, median};
use super::seeds::{Scripts, SeedsCaller};
use super::table::short;
use super::{Findings, RedisPlan};
use crate::Result;
use crate::plan::Noise;
use crate::progress::note;

const TOPIC: &str = "duel";
const BAR: f64 = 1.5;

#[derive(Serialize)]
struct DuelFigures {
    put_to_seeds: f64,
    put_per_s: f64,
    seeds_put_per_s: f64,
    reserve_ack_to_seeds: f64,
    reserve_ack_per_s: f64,
    seeds_reserve_ack_per_s: f64,
}

/// What one caller calls.
#[derive(Clone)]
enum Caller {
    Dormouse(Queue),
    Seeds(SeedsCaller),
}

impl Caller {
    async fn put(&mut self, number: u64, body: &Bytes) -> Result<()> {
        match self {
            Caller::Dormouse(queue) => {
                queue.put(TOPIC, body.clone()).await?;
                Ok(())
            }
            Caller::Seeds(seeds) => seeds.put(number, body).await,
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
            Caller::Seeds(seeds) => seeds.consume().await,
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
    tell(&contenders, plan, found)
}

async fn enter(rig: &Rig, plan: &RedisPlan) -> Result<Vec<Contender>> {
    let url = rig.server.url();
    let scripts = Scripts::load(&url)?;
    let callers = usize::try_from(plan.callers)?;
    let one = SeedsCaller::connect(&url, &scripts).await?;
    let mut separate = Vec::new();
    for _ in 0..callers {
        separate.push(Caller::Seeds(SeedsCaller::connect(&url, &scripts).await?));
    }
    let contender =
        |name, callers| Contender { name, callers, puts: Vec::new(), consumed: Vec::new() };
    Ok(vec![
        contender("dormouse", vec![Caller::Dormouse(rig.queue()); callers]),
        contender("seeds, one connection", vec![Caller::Seeds(one); callers]),
        contender("seeds, a connection each", separate),
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

fn tell(contenders: &[Contender], plan: &RedisPlan, found: &mut Findings) -> Result<()> {
    let [ours, seeds @ ..] = contenders else { return Err("there is no contender".into()) };
    let (put_to_seeds, seeds_put_per_s) = compare(ours, seeds, |contender| &contender.puts);
    let (reserve_ack_to_seeds, seeds_reserve_ack_per_s) =
        compare(ours, seeds, |contender| &contender.consumed);
    let figures = DuelFigures {
        put_to_seeds,
        put_per_s: middle(&ours.puts, |turn| turn.per_s),
        seeds_put_per_s,
        reserve_ack_to_seeds,
        reserve_ack_per_s: middle(&ours.consumed, |turn| turn.per_s),
        seeds_reserve_ack_per_s,
    };
    let more = |ours: f64, seeds: f64| format!("{} to {} jobs/s", short(ours), short(seeds));
    let callers = plan.callers;
    let put = more(figures.put_per_s, figures.seeds_put_per_s);
    found.table.at_least(
        &format!("put, {callers} callers, to the better of the seeds' clients"),
        BAR,
        put_to_seeds,
        &put,
    );
    let consumed = more(figures.reserve_ack_per_s, figures.seeds_reserve_ack_per_s);
    let measure = format!("reserve + ack, {callers} callers, to the better of the seeds' clients");
    found.table.at_least(&measure, BAR, reserve_ack_to_seeds, &consumed);
    for other in seeds {
        let others = std::slice::from_ref(other);
        let put = compare(ours, others, |contender| &contender.puts).0;
        let consumed = compare(ours, others, |contender| &contender.consumed).0;
        let ratios = format!("put {put:.2}, reserve + ack {consumed:.2}");
        found.table.note(&format!("dormouse to {}", other.name), ratios);
    }
    for contender in contenders {
        let name = contender.name;
        found.table.note(&format!("put: {name}"), spent(&contender.puts));
        found.table.note(&format!("reserve + ack: {name}"), spent(&contender.consumed));
    }
    found.add(&figures)
}

/// The median over the rounds of ours to the better of the others, and the others' median rate.
fn compare<'a>(
    ours: &'a Contender,
    seeds: &'a [Contender],
    turns: impl Fn(&'a Contender) -> &'a Vec<Turn>,
) -> (f64, f64) {
    let mut ratios = Vec::new();
    for (round, turn) in turns(ours).iter().enumerate() {
        let others = seeds.iter().filter_map(|other| turns(other).get(round));
        let best = others.map(|turn| turn.per_s).fold(f64::MIN_POSITIVE, f64::max);
        ratios.push(turn.per_s / best);
    }
    let best = seeds.iter().map(|other| middle(turns(other), |turn| turn.per_s));
    (median(ratios), best.fold(0.0, f64::max))
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
