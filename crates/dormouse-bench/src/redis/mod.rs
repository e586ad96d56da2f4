//! `dormouse-bench redis`: the backend on a real Redis, which is started for it, beside a
//! straightforward client of the scripts that people write by hand (see `zset_scripts.rs`).

mod cost;
mod duel;
mod fill;
mod herd;
mod idle;
mod late;
mod memory;
mod rig;
pub(crate) mod table;
mod verbs;
pub(crate) mod zset_scripts;

use clap::ValueEnum;
use serde_json::{Map, Value};

use crate::plan::NUMBER_BYTES;
use crate::report::round;
use crate::{Result, progress};
use rig::Rig;
pub(crate) use rig::median;
use table::Table;

/// The flags of `redis`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RedisPlan {
    /// Jobs of the backlog, and of the herd that is due in one ms
    #[arg(long, default_value_t = 1_000_000)]
    jobs: u64,
    /// Bytes of a body, at least 8
    #[arg(long, default_value_t = 100)]
    body: usize,
    /// Concurrent callers of the duel
    #[arg(long, default_value_t = 50)]
    callers: u64,
    /// Rounds of the duel; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Jobs that each contender puts and consumes per round
    #[arg(long, default_value_t = 50_000)]
    duel_jobs: u64,
    /// Partitions of a topic [default: the backend's own, one on a single server]
    #[arg(long)]
    partitions: Option<u16>,
    /// How long the idle consumer is watched
    #[arg(long, default_value_t = 30)]
    idle_seconds: u64,
    /// Seed of bodies, due times and choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Phases to leave out
    #[arg(long, value_delimiter = ',')]
    skip: Vec<Phase>,
}

/// The measurements, in this order. `late` and `verbs` need the backlog that `memory` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Phase {
    Cost,
    Duel,
    Memory,
    Late,
    Verbs,
    Herd,
    Idle,
}

impl RedisPlan {
    fn check(&self) -> Result<()> {
        if self.body < NUMBER_BYTES {
            return Err(format!("--body is {}; give at least {NUMBER_BYTES}", self.body).into());
        }
        let least = self.callers.max(1);
        if self.callers == 0 || self.rounds == 0 || self.duel_jobs < least || self.jobs < 1_000 {
            return Err("give at least one caller, one round, a job per caller, 1000 jobs".into());
        }
        Ok(())
    }

    fn includes(&self, phase: Phase) -> bool {
        !self.skip.contains(&phase)
    }
}

/// Results: a table for people, figures for programs.
#[derive(Default)]
struct Findings {
    table: Table,
    figures: Map<String, Value>,
}

impl Findings {
    /// Takes over the figures of a phase.
    fn add(&mut self, figures: &impl serde::Serialize) -> Result<()> {
        if let Value::Object(figures) = serde_json::to_value(figures)? {
            self.figures.extend(figures);
        }
        Ok(())
    }

    fn print(mut self) -> Result<()> {
        use std::io::Write;
        self.figures.values_mut().for_each(round);
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{}\n{}", self.table, Value::Object(self.figures))?;
        Ok(stdout.flush()?)
    }
}

/// Every phase on a server of its own, except those that share the backlog.
pub(crate) fn run(plan: &RedisPlan) -> Result<()> {
    plan.check()?;
    let mut found = Findings::default();
    found.add(&serde_json::json!({
        "jobs": plan.jobs, "body": plan.body, "callers": plan.callers, "rounds": plan.rounds,
        "duel_jobs": plan.duel_jobs, "partitions": plan.partitions, "seed": plan.seed,
    }))?;
    if plan.includes(Phase::Cost) {
        cost::run(&Rig::start(plan)?, plan, &mut found)?;
    }
    if plan.includes(Phase::Duel) {
        duel::run(&Rig::start(plan)?, plan, &mut found)?;
    }
    if [Phase::Memory, Phase::Late, Phase::Verbs].into_iter().any(|phase| plan.includes(phase)) {
        on_backlog(plan, &mut found)?;
    }
    if plan.includes(Phase::Herd) {
        herd::run(&Rig::start(plan)?, plan, &mut found)?;
    }
    if plan.includes(Phase::Idle) {
        idle::run(&Rig::start(plan)?, plan, &mut found)?;
    }
    progress::clear();
    found.print()
}

fn on_backlog(plan: &RedisPlan, found: &mut Findings) -> Result<()> {
    let rig = Rig::start(plan)?;
    let backlog = memory::run(&rig, plan, found)?;
    if plan.includes(Phase::Late) {
        late::run(&rig, plan, found)?;
    }
    if plan.includes(Phase::Verbs) {
        verbs::run(&rig, plan, &backlog, found)?;
    }
    Ok(())
}
