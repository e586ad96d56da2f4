//! The duel: contenders take turns at the same work, each on a fresh server.

use std::collections::BTreeMap;
use std::time::Duration;

use super::arena::Arena;
use super::contender::Contender;
use super::findings::Findings;
use super::load::{AckedJobs, ConnectionPool, Limits, PutWork, TakeWork, Turn};
use super::server::Server;
use super::{PeersPlan, Phase};
use crate::Result;
use crate::progress::note;
use crate::redis::table::short;

/// How long jobs are put before takes, however slow the server is.
const FILL_PIPELINE: usize = 100;
const BATCH: usize = 100;

/// The kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Measure {
    /// Puts, one under way per connection.
    Put,
    /// Puts in pipelines.
    PutDeep,
    /// Takes and acks, one under way per connection.
    Take,
    /// Takes and acks in pipelines.
    TakeDeep,
    /// Takes of a hundred, acks of a hundred.
    Batch,
}

impl Measure {
    pub(super) const ALL: [Measure; 5] =
        [Measure::Put, Measure::PutDeep, Measure::Take, Measure::TakeDeep, Measure::Batch];

    pub(super) fn key(self) -> &'static str {
        match self {
            Measure::Put => "put",
            Measure::PutDeep => "put_deep",
            Measure::Take => "take",
            Measure::TakeDeep => "take_deep",
            Measure::Batch => "batch",
        }
    }

    fn phase(self) -> Phase {
        match self {
            Measure::Put | Measure::PutDeep => Phase::Put,
            Measure::Take | Measure::TakeDeep => Phase::Take,
            Measure::Batch => Phase::Batch,
        }
    }
}

/// All turns, round by round.
#[derive(Default)]
pub(super) struct Turns(BTreeMap<(&'static str, Measure), Vec<Turn>>);

impl Turns {
    pub(super) fn of(&self, contender: Contender, measure: Measure) -> &[Turn] {
        self.0.get(&(contender.key(), measure)).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, contender: Contender, measure: Measure, turn: Turn) {
        self.0.entry((contender.key(), measure)).or_default().push(turn);
    }
}

pub(super) fn run(arena: &mut Arena, plan: &PeersPlan, found: &mut Findings) -> Result<Turns> {
    let mut turns = Turns::default();
    let mut contenders = plan.contenders();
    for round in 1..=plan.rounds {
        let mut there = Vec::new();
        for contender in contenders {
            if found.try_it(contender, || enter(arena, plan, contender, round, &mut turns))? {
                there.push(contender);
            }
        }
        contenders = there;
        // Nobody always comes after the same one's disk traffic.
        let turn_by = usize::from(!contenders.is_empty());
        contenders.rotate_left(turn_by);
    }
    Ok(turns)
}

/// All that one contender does in a round.
fn enter(
    arena: &mut Arena,
    plan: &PeersPlan,
    contender: Contender,
    round: usize,
    turns: &mut Turns,
) -> Result<()> {
    let entered = arena.enter(contender)?;
    let mut bout = Bout {
        server: &entered.server,
        pool: ConnectionPool::connect(entered.server.address, plan.connections)?,
        acked: AckedJobs::default(),
        plan,
    };
    bout.warm_up()?;
    let mut told = Vec::new();
    for measure in Measure::ALL {
        if !plan.includes(measure.phase()) {
            continue;
        }
        if let Some(turn) = bout.turn(contender, measure)? {
            turns.add(contender, measure, turn);
            told.push(format!("{} {}/s", measure.key(), short(turn.per_s)));
        }
    }
    note(&format!("round {round}: {}: {}", contender.name(), told.join(", ")));
    Ok(())
}

/// A server and the pool before it.
struct Bout<'a> {
    server: &'a Server,
    pool: ConnectionPool,
    acked: AckedJobs,
    plan: &'a PeersPlan,
}

impl Bout<'_> {
    fn limits(&self) -> Limits {
        Limits { jobs: self.plan.jobs, time: self.plan.turn_time() }
    }

    /// The first requests of each connection find everything cold.
    fn warm_up(&mut self) -> Result<()> {
        let limits = Limits { jobs: self.plan.connections as u64, ..self.limits() };
        self.put(1, limits)?;
        self.take(1, 1, limits)
    }

    fn turn(&mut self, contender: Contender, measure: Measure) -> Result<Option<Turn>> {
        let (limits, deep) = (self.limits(), self.plan.pipeline);
        match measure {
            Measure::Put => self.measure(|bout| bout.put(1, limits)).map(Some),
            Measure::PutDeep => self.measure(|bout| bout.put(deep, limits)).map(Some),
            Measure::Take => {
                self.fill(1_000)?;
                // The other half is for the pipelines.
                let jobs = limits.jobs.min(self.acked.left / 2);
                self.measure(|bout| bout.take(1, 1, Limits { jobs, ..limits })).map(Some)
            }
            Measure::TakeDeep => {
                let jobs = limits.jobs.min(self.acked.left);
                self.measure(|bout| bout.take(deep, 1, Limits { jobs, ..limits })).map(Some)
            }
            Measure::Batch if contender.has_batches() => {
                self.fill(limits.jobs)?;
                self.measure(|bout| bout.take(1, BATCH, limits)).map(Some)
            }
            Measure::Batch => Ok(None),
        }
    }

    /// Work on the acked, measured by what changed there.
    fn measure(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<Turn> {
        let process = &self.server.process;
        Turn::measure(process, || {
            let before = self.acked.left;
            work(self)?;
            Ok(self.acked.left.abs_diff(before))
        })
    }

    fn put(&mut self, pipeline: usize, limits: Limits) -> Result<()> {
        let codec = &self.server.codec;
        let mut work = PutWork::new(codec, pipeline, Duration::ZERO, self.acked.next(), limits);
        self.pool.run(&mut work)?;
        self.acked.put_until(work.next());
        Ok(())
    }

    fn take(&mut self, pipeline: usize, max: usize, limits: Limits) -> Result<()> {
        let (codec, connections) = (&self.server.codec, self.plan.connections);
        let acked = &mut self.acked;
        let mut work = TakeWork::new(codec, connections, pipeline, max, limits, acked);
        self.pool.run(&mut work)
    }

    /// Puts until this many jobs are there, for at most a turn.
    fn fill(&mut self, jobs: u64) -> Result<()> {
        let missing = jobs.saturating_sub(self.acked.left);
        if missing == 0 {
            return Ok(());
        }
        self.put(FILL_PIPELINE, Limits { jobs: missing, ..self.limits() })
    }
}
