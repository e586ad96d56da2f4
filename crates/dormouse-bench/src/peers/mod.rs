//! `dormouse-bench peers`: this project's server beside Redis with hand-written ZSET scripts and
//! beanstalkd, on the same file system, under the same load.

mod arena;
mod caller;
pub(crate) mod connect;
mod contender;
mod disk;
mod duel;
mod findings;
mod late;
mod load;
mod memory;
pub(crate) mod mix;
mod ratios;
mod server;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use crate::{Result, progress};
use arena::Arena;
use contender::Contender;
use findings::Findings;

/// The flags of `peers`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PeersPlan {
    /// Connections of the load generator
    #[arg(long, default_value_t = 50)]
    connections: usize,
    /// Requests under way per connection, beside one
    #[arg(long, default_value_t = 16)]
    pipeline: usize,
    /// Jobs of a turn at most
    #[arg(long, default_value_t = 200_000)]
    jobs: u64,
    /// Seconds of a turn at most
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Rounds in which the contenders take turns; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Jobs of which lateness is measured, a thousand each second
    #[arg(long, default_value_t = 4_000)]
    late_jobs: u64,
    /// Jobs that wait while memory is measured
    #[arg(long, default_value_t = 1_000_000)]
    memory_jobs: u64,
    /// The same of this project's server, which the peers' memory is scaled to
    #[arg(long, default_value_t = 10_000_000)]
    jobs_memory: u64,
    /// A small part of everything, to see whether it works: the figures mean little
    #[arg(long)]
    quick: bool,
    /// Measurements to leave out
    #[arg(long, value_delimiter = ',')]
    skip: Vec<Phase>,
    /// Contenders that take part [default: all]
    #[arg(long, value_delimiter = ',')]
    only: Vec<Contender>,
    /// Directory for everything the servers write [default: next to this program]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// This project's server [default: `dormouse` next to this program]
    #[arg(long)]
    dormouse: Option<PathBuf>,
}

/// The measurements, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Phase {
    /// Puts
    Put,
    /// Takes and acks, one by one
    Take,
    /// Takes and acks of a hundred
    Batch,
    /// How late jobs come
    Late,
    /// Memory of waiting jobs and idle connections
    Memory,
    /// Answers of servers whose disk fails
    Disk,
}

impl PeersPlan {
    fn check(&self) -> Result<()> {
        let least = (self.connections.min(self.pipeline)).min(self.rounds);
        if least == 0 || self.jobs < 1_000 || self.seconds <= 0.0 {
            return Err(
                "give at least one connection, pipeline, round, 1000 jobs, some time".into()
            );
        }
        Ok(())
    }

    fn quickened(mut self) -> PeersPlan {
        if self.quick {
            self.rounds = 1;
            self.jobs = self.jobs.min(10_000);
            self.seconds = self.seconds.min(0.3);
            self.late_jobs = self.late_jobs.min(500);
            self.memory_jobs = self.memory_jobs.min(50_000);
            self.jobs_memory = self.jobs_memory.min(200_000);
        }
        self
    }

    fn includes(&self, phase: Phase) -> bool {
        !self.skip.contains(&phase)
    }

    fn includes_any(&self, phases: &[Phase]) -> bool {
        phases.iter().any(|&phase| self.includes(phase))
    }

    fn contenders(&self) -> Vec<Contender> {
        let takes_part = |one: &Contender| self.only.is_empty() || self.only.contains(one);
        Contender::all().iter().copied().filter(takes_part).collect()
    }

    fn turn_time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

pub(crate) fn run(plan: &PeersPlan) -> Result<()> {
    plan.check()?;
    let plan = &plan.clone().quickened();
    let mut arena = Arena::new(plan.dir.as_deref(), plan.dormouse.as_deref())?;
    let mut found = Findings::default();
    for (name, value) in [
        ("connections", plan.connections as u64),
        ("pipeline", plan.pipeline as u64),
        ("jobs", plan.jobs),
        ("rounds", plan.rounds as u64),
        ("body", wire::body::BODY as u64),
    ] {
        found.figure(name.to_owned(), value);
    }
    if plan.includes_any(&[Phase::Put, Phase::Take, Phase::Batch]) {
        let turns = duel::run(&mut arena, plan, &mut found)?;
        ratios::report(&turns, plan, &mut found);
    }
    type Measure = fn(&mut Arena, &PeersPlan, &mut Findings) -> Result<()>;
    let measures: [(Phase, Measure); 4] = [
        (Phase::Late, late::run),
        (Phase::Memory, memory::run),
        (Phase::Memory, memory::idle),
        (Phase::Disk, disk::run),
    ];
    for (phase, measure) in measures {
        if plan.includes(phase) {
            found.begin();
            measure(&mut arena, plan, &mut found)?;
        }
    }
    progress::clear();
    found.print()
}
