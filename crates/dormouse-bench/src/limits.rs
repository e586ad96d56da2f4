//! `dormouse-bench limits`: limits of topics and groups on the disk store and on Redis. What limits
//! that do not bind cost, how much of what a limit of groups allows is given, and how long others
//! wait beside a group that is full.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::ValueEnum;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{LeasedJob, Put, SetTopic};
use dormouse_core::rate::Rate;
use dormouse_core::topic::{Settings, TopicName};
use dormouse_disk::engine::{Durability, Engine, Options};
use dormouse_redis::RedisBackend;
use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::client::{Client, reserve, unexpected};
use crate::latency::Latencies;
use crate::redis::median;
use crate::{Result, progress, report, run};

/// The flags of `limits`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LimitsPlan {
    /// Where jobs are kept
    #[arg(long, value_enum, default_value_t = Store::Disk)]
    store: Store,
    /// Callers at the same time
    #[arg(long, default_value_t = 50)]
    callers: usize,
    /// Jobs of a measurement of throughput
    #[arg(long, default_value_t = 100_000)]
    jobs: usize,
    /// Rounds with and without limits, in turn; the median counts
    #[arg(long, default_value_t = 6)]
    rounds: usize,
    /// Groups of the jobs
    #[arg(long, default_value_t = 10_000)]
    groups: usize,
    /// Jobs that each group may give in a second where its limit binds
    #[arg(long, default_value_t = 2)]
    group_per_s: u64,
    /// Seconds of the measurement with a limit that binds
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Ready jobs of the group that is full
    #[arg(long, default_value_t = 1_000_000)]
    flood: usize,
    /// Jobs of other groups beside it, one at a time
    #[arg(long, default_value_t = 5_000)]
    others: usize,
    /// Answer before the disk has the data
    #[arg(long)]
    relaxed: bool,
    /// Where to make a directory [default: the temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Store {
    Disk,
    Redis,
}

/// Jobs per request of the preparation.
const BATCH: usize = 500;
/// Bytes of a body.
const BODY: usize = 100;

/// A backend, with what must live as long as it does.
struct Stage {
    backend: Arc<dyn Backend>,
    engine: Option<Engine>,
    _dir: Option<TempDir>,
    _redis: Option<RedisServer>,
}

impl Stage {
    fn open(plan: &LimitsPlan) -> Result<Stage> {
        match plan.store {
            Store::Disk => {
                let parent = run::parent_on_disk(plan.dir.as_deref())?;
                let dir = tempfile::Builder::new().prefix("dormouse-limits-").tempdir_in(parent)?;
                let durability =
                    if plan.relaxed { Durability::Relaxed { ms: 50 } } else { Durability::Synced };
                let engine =
                    Engine::open(dir.path(), Options { durability, ..Options::default() })?;
                let backend = Arc::new(engine.clone());
                Ok(Stage { backend, engine: Some(engine), _dir: Some(dir), _redis: None })
            }
            Store::Redis => {
                let redis = RedisServer::start(RedisConfig::default());
                let options = dormouse_redis::Options::default();
                let backend = Arc::new(RedisBackend::open(&redis.url(), options)?);
                Ok(Stage { backend, engine: None, _dir: None, _redis: Some(redis) })
            }
        }
    }

    fn client(&self) -> Client {
        Client::over(Arc::clone(&self.backend))
    }

    fn set(&self, topic: &TopicName, settings: Settings) -> Result<()> {
        let set = SetTopic { topic: topic.clone(), settings };
        self.client().call(Command::from(set)).map(drop)
    }

    fn close(self) -> Result<()> {
        match &self.engine {
            Some(engine) => Ok(engine.close()?),
            None => Ok(()),
        }
    }
}

pub(crate) fn run(plan: &LimitsPlan) -> Result<()> {
    if plan.callers == 0 || plan.jobs < plan.callers || plan.rounds == 0 || plan.groups == 0 {
        return Err("give at least one caller, round and group, and a job per caller".into());
    }
    let mut figures = Map::new();
    let mut add = |name: &str, value: f64| figures.insert(name.to_owned(), Value::from(value));
    unbound(plan, &mut add)?;
    bound(plan, &mut add)?;
    beside_a_full_group(plan, &mut add)?;
    report::print(Value::Object(figures))
}

/// Limits that allow more than is ever taken.
fn generous() -> [(&'static str, Settings); 3] {
    let rate = Some(Rate { burst: 1_000_000, ..Rate::new(1_000_000, 1_000) });
    let none = Settings::default;
    [
        ("none", none()),
        ("topic", Settings { leased_max: Some(1_000_000), rate, ..none() }),
        ("group", Settings { group_leased_max: Some(1_000_000), group_rate: rate, ..none() }),
    ]
}

/// Throughput with limits that do not bind, against without: put, then reserve with ack.
fn unbound(plan: &LimitsPlan, add: &mut impl FnMut(&str, f64) -> Option<Value>) -> Result<()> {
    let all = generous();
    let mut rates: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); all.len()];
    for round in 0..plan.rounds {
        // Each of them is the first as often as the others: the first finds everything cold.
        for turn in 0..all.len() {
            let index = (round + turn) % all.len();
            let (Some((name, settings)), Some((puts, takes))) =
                (all.get(index), rates.get_mut(index))
            else {
                continue;
            };
            progress::note(&format!("limits that do not bind: {name}, round {}", round + 1));
            let stage = Stage::open(plan)?;
            let topic = TopicName::new("t")?;
            stage.set(&topic, settings.clone())?;
            let put = |client: &Client, jobs| put_each(plan, client, &topic, jobs);
            puts.push(per_second(plan, &stage, put)?);
            takes.push(per_second(plan, &stage, |client, jobs| take_each(client, &topic, jobs))?);
            stage.close()?;
        }
    }
    let medians: Vec<(f64, f64)> =
        rates.into_iter().map(|(puts, takes)| (median(puts), median(takes))).collect();
    for ((name, _), (puts, takes)) in all.iter().zip(&medians) {
        add(&format!("{name}_put_per_s"), *puts);
        add(&format!("{name}_reserve_ack_per_s"), *takes);
        if let Some((base_puts, base_takes)) = medians.first().filter(|_| *name != "none") {
            add(&format!("{name}_put_ratio"), puts / base_puts);
            add(&format!("{name}_reserve_ack_ratio"), takes / base_takes);
        }
    }
    Ok(())
}

/// How many jobs per second all callers do together, each in a thread of its own.
fn per_second(
    plan: &LimitsPlan,
    stage: &Stage,
    work: impl Fn(&Client, usize) -> Result<()> + Sync,
) -> Result<f64> {
    let each = plan.jobs / plan.callers;
    let began = Instant::now();
    thread::scope(|scope| {
        let work = &work;
        let callers: Vec<_> = (0..plan.callers)
            .map(|_| {
                let client = stage.client();
                scope.spawn(move || work(&client, each))
            })
            .collect();
        callers.into_iter().try_for_each(|caller| {
            caller.join().unwrap_or_else(|_| Err("a caller panicked".into()))
        })
    })?;
    Ok((each * plan.callers) as f64 / began.elapsed().as_secs_f64())
}

fn group(number: usize) -> Option<Bytes> {
    Some(Bytes::from(format!("tenant-{number}")))
}

fn put_each(plan: &LimitsPlan, client: &Client, topic: &TopicName, jobs: usize) -> Result<()> {
    for number in 0..jobs {
        let put = Put { group: group(number % plan.groups), ..job(topic) };
        client.call(Command::Put(vec![put]))?;
    }
    Ok(())
}

fn job(topic: &TopicName) -> Put {
    Put::new(topic.clone(), vec![b'x'; BODY])
}

fn take_each(client: &Client, topic: &TopicName, jobs: usize) -> Result<()> {
    for _ in 0..jobs {
        let taken = take(client, topic, 1, 60_000)?;
        client.call(Command::Ack(taken.iter().map(|job| job.token).collect()))?;
    }
    Ok(())
}

fn take(client: &Client, topic: &TopicName, max: usize, wait_ms: i64) -> Result<Vec<LeasedJob>> {
    match client.call(reserve(vec![topic.clone()], max, wait_ms))? {
        Reply::Jobs(jobs) => Ok(jobs),
        other => Err(unexpected("reserve", &other)),
    }
}

/// Puts ready jobs, job `n` of the group that `of` says.
fn fill(stage: &Stage, topic: &TopicName, jobs: usize, of: impl Fn(usize) -> usize) -> Result<()> {
    const IN_FLIGHT: usize = 8;
    let client = stage.client();
    let mut open = VecDeque::new();
    for from in (0..jobs).step_by(BATCH) {
        let puts = (from..jobs.min(from + BATCH))
            .map(|number| Put { group: group(of(number)), ..job(topic) })
            .collect();
        open.push_back(client.send(Command::Put(puts))?);
        if open.len() > IN_FLIGHT {
            check_put(&client.receive()?.reply)?;
            open.pop_front();
        }
    }
    open.into_iter().try_for_each(|_| check_put(&client.receive()?.reply))
}

/// A job that was refused would make the figures worthless.
fn check_put(reply: &Reply) -> Result<()> {
    let Reply::Put(items) = reply else { return Err(unexpected("put", reply)) };
    match items.iter().find_map(|item| item.as_ref().err()) {
        Some(error) => Err(error.to_string().into()),
        None => Ok(()),
    }
}

/// A rate that binds every group: what is given, against what the rates of all groups allow.
fn bound(plan: &LimitsPlan, add: &mut impl FnMut(&str, f64) -> Option<Value>) -> Result<()> {
    progress::note("a limit of groups that binds");
    let stage = Stage::open(plan)?;
    let topic = TopicName::new("t")?;
    let group_rate = Some(Rate::new(plan.group_per_s, 1_000));
    stage.set(&topic, Settings { group_rate, ..Settings::default() })?;
    let per_group = (plan.group_per_s * (plan.seconds + 2)) as usize;
    fill(&stage, &topic, plan.groups * per_group, |number| number % plan.groups)?;
    // The first job of each group is there at once: it does not count.
    let (client, mut first) = (stage.client(), 0);
    let began = Instant::now();
    while first < plan.groups {
        let jobs = take(&client, &topic, 100, 1_000)?;
        first += jobs.len();
        client.call(Command::Ack(jobs.iter().map(|job| job.token).collect()))?;
        if began.elapsed() > Duration::from_secs(plan.seconds) {
            break;
        }
    }
    let (span, began) = (Duration::from_secs(plan.seconds), Instant::now());
    let given: usize = thread::scope(|scope| {
        let consumers: Vec<_> = (0..4)
            .map(|_| {
                let (client, topic) = (stage.client(), topic.clone());
                scope.spawn(move || -> Result<usize> {
                    let mut given = 0;
                    while began.elapsed() < span {
                        let jobs = take(&client, &topic, 100, 100)?;
                        given += jobs.len();
                        client.call(Command::Ack(jobs.iter().map(|job| job.token).collect()))?;
                    }
                    Ok(given)
                })
            })
            .collect();
        let join = |consumer: thread::ScopedJoinHandle<'_, Result<usize>>| {
            consumer.join().unwrap_or_else(|_| Err("a consumer panicked".into()))
        };
        consumers.into_iter().map(join).sum::<Result<usize>>()
    })?;
    let ceiling = (plan.groups as u64 * plan.group_per_s) as f64;
    let per_s = given as f64 / began.elapsed().as_secs_f64();
    add("bound_per_s", per_s);
    add("bound_ceiling_per_s", ceiling);
    add("bound_ratio", per_s / ceiling);
    stage.close()
}

/// One group has a million ready jobs and no slot: put to taken of jobs of other groups.
fn beside_a_full_group(
    plan: &LimitsPlan,
    add: &mut impl FnMut(&str, f64) -> Option<Value>,
) -> Result<()> {
    progress::note("a full group");
    let stage = Stage::open(plan)?;
    let topic = TopicName::new("t")?;
    stage.set(&topic, Settings { group_leased_max: Some(1), ..Settings::default() })?;
    let began = Instant::now();
    fill(&stage, &topic, plan.flood, |_| 0)?;
    add("flood_s", began.elapsed().as_secs_f64());
    let client = stage.client();
    let ready = client.stats()?.ready;
    add("flood_ready", ready as f64);
    if ready != plan.flood as u64 {
        return Err(format!("{ready} jobs are ready, {} were put", plan.flood).into());
    }
    // Its slot is taken, and stays so.
    if take(&client, &topic, 1, 1_000)?.is_empty() {
        return Err("the group that is to be full gave no job".into());
    }
    let mut times = Latencies::default();
    for number in 0..plan.others {
        let put = Put { group: group(1 + number % plan.groups), ..job(&topic) };
        let began = Instant::now();
        client.call(Command::Put(vec![put]))?;
        let jobs = take(&client, &topic, 1, 60_000)?;
        times.add(began.elapsed());
        if jobs.iter().any(|job| job.group == group(0)) {
            return Err("the full group gave another job: its lease ran out".into());
        }
        client.call(Command::Ack(jobs.iter().map(|job| job.token).collect()))?;
    }
    add("others_p50_ms", times.percentile(50) as f64 / 1e3);
    add("others_p99_ms", times.percentile(99) as f64 / 1e3);
    add("others_max_ms", times.percentile(100) as f64 / 1e3);
    stage.close()
}
