//! `dormouse-bench connect`: the library's client beside the raw load generator, at the same
//! concurrency, on the same server.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dormouse::Queue;
use tokio::runtime::{Builder, Runtime};

use super::arena::Arena;
use super::contender::Contender;
use super::findings::Findings;
use super::load::{AckedJobs, ConnectionPool, Limits, PutWork, TakeWork, Turn};
use super::server::Server;
use super::wire::body::BODY;
use crate::progress::{self, note};
use crate::redis::table::short;
use crate::{Error, Result};

/// The flags of `connect`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ConnectPlan {
    /// Tasks of the client, and connections of the load generator
    #[arg(long, default_value_t = 50)]
    tasks: usize,
    /// Seconds of a turn
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Rounds in which both take turns; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Directory for everything the server writes [default: next to this program]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// This project's server [default: `dormouse` next to this program]
    #[arg(long)]
    dormouse: Option<PathBuf>,
}

/// The client that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Raw,
    Client,
}

const TOPIC: &str = "connect";

pub(crate) fn run(plan: &ConnectPlan) -> Result<()> {
    if plan.tasks == 0 || plan.rounds == 0 || plan.seconds <= 0.0 {
        return Err("give at least one task, one round and some time".into());
    }
    let mut arena = Arena::new(plan.dir.as_deref(), plan.dormouse.as_deref())?;
    let mut found = Findings::default();
    found.figure("tasks".to_owned(), plan.tasks as u64);
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    // Of each measure, the figures of both sides, round by round.
    let mut turns: Vec<(&str, Side, Turn)> = Vec::new();
    for round in 0..plan.rounds {
        let entered = arena.enter(Contender::RespSynced)?;
        let mut bout = Bout::new(&entered.server, plan, &runtime)?;
        let order =
            if round % 2 == 0 { [Side::Raw, Side::Client] } else { [Side::Client, Side::Raw] };
        for side in order {
            for measure in ["put", "take"] {
                let turn = bout.turn(side, measure)?;
                note(&format!("round {}: {side:?} {measure} {}/s", round + 1, short(turn.per_s)));
                turns.push((measure, side, turn));
            }
        }
        bout.close();
    }
    progress::clear();
    for measure in ["put", "take"] {
        let median = |side: Side, of: fn(&Turn) -> f64| {
            let mut figures: Vec<f64> = turns
                .iter()
                .filter(|(name, its, _)| (*name, *its) == (measure, side))
                .map(|(.., turn)| of(turn))
                .collect();
            figures.sort_by(f64::total_cmp);
            figures[figures.len() / 2]
        };
        let per_s = |turn: &Turn| turn.per_s;
        let ratio = median(Side::Client, per_s) / median(Side::Raw, per_s);
        for (name, side) in [("raw", Side::Raw), ("client", Side::Client)] {
            found.figure(format!("{measure}_{name}_per_s"), median(side, per_s).round());
            found.figure(format!("{measure}_{name}_own_us"), median(side, |turn| turn.own_us));
            found
                .figure(format!("{measure}_{name}_server_us"), median(side, |turn| turn.server_us));
        }
        found.figure(format!("{measure}_ratio"), ratio);
    }
    found.print()
}

/// One server, and both who use it.
struct Bout<'a> {
    server: &'a Server,
    plan: &'a ConnectPlan,
    runtime: &'a Runtime,
    pool: ConnectionPool,
    acked: AckedJobs,
    queue: Queue,
}

impl<'a> Bout<'a> {
    fn new(server: &'a Server, plan: &'a ConnectPlan, runtime: &'a Runtime) -> Result<Bout<'a>> {
        let pool = ConnectionPool::connect(server.address, plan.tasks)?;
        let queue = Queue::connect(&format!("dormouse://{}", server.address))?;
        Ok(Bout { server, plan, runtime, pool, acked: AckedJobs::default(), queue })
    }

    fn close(self) {
        drop(self.queue);
    }

    fn turn(&mut self, side: Side, measure: &str) -> Result<Turn> {
        let server = self.server;
        Turn::measure(&server.process, || match (side, measure) {
            (Side::Raw, "put") => self.raw_put(),
            (Side::Raw, _) => self.raw_take(),
            (Side::Client, "put") => self.client(|queue, _| async move {
                queue.put(TOPIC, vec![b'x'; BODY]).await.map(|_| 1)
            }),
            (Side::Client, _) => self.client(|queue, _| async move {
                let Some(job) = queue.reserve_one(TOPIC).await? else { return Ok(0) };
                job.ack().await.map(|_| 1)
            }),
        })
    }

    fn limits(&self) -> Limits {
        Limits { jobs: u64::MAX / 2, time: Duration::from_secs_f64(self.plan.seconds) }
    }

    fn raw_put(&mut self) -> Result<u64> {
        let (codec, limits) = (&self.server.codec, self.limits());
        let mut work = PutWork::new(codec, 1, Duration::ZERO, self.acked.next(), limits);
        self.pool.run(&mut work)?;
        self.acked.put_until(work.next());
        Ok(work.done)
    }

    fn raw_take(&mut self) -> Result<u64> {
        let limits = Limits { jobs: self.acked.left, ..self.limits() };
        let codec = &self.server.codec;
        let mut work = TakeWork::new(codec, self.plan.tasks, 1, 1, limits, &mut self.acked);
        self.pool.run(&mut work)?;
        Ok(work.done)
    }

    /// All tasks do one after the other until the time is over, or nothing is left to do.
    fn client<W, F>(&self, work: W) -> Result<u64>
    where
        W: Fn(Queue, usize) -> F + Copy + Send + Sync + 'static,
        F: Future<Output = std::result::Result<u64, dormouse::Error>> + Send,
    {
        let deadline = Instant::now() + self.limits().time;
        let done = Arc::new(AtomicU64::new(0));
        let tasks = (0..self.plan.tasks).map(|task| {
            let (queue, done) = (self.queue.clone(), Arc::clone(&done));
            self.runtime.spawn(async move {
                while Instant::now() < deadline {
                    match work(queue.clone(), task).await? {
                        0 => break,
                        jobs => done.fetch_add(jobs, Ordering::Relaxed),
                    };
                }
                Ok::<_, dormouse::Error>(())
            })
        });
        let tasks: Vec<_> = tasks.collect();
        self.runtime.block_on(async {
            for task in tasks {
                task.await.map_err(Error::from)??;
            }
            Ok::<_, Error>(())
        })?;
        Ok(done.load(Ordering::Relaxed))
    }
}
