//! Whether any verb takes long on a topic with very many jobs: of each the most processor time of
//! Redis for a script. SLOWLOG counts also the time in which Redis did not run.

use dormouse_core::command::{Command, Reply};
use dormouse_core::job::{JobId, State};
use dormouse_core::op::{
    Cancel, Forecast, Kick, List, ListRange, Peek, Reschedule, ReserveId, Stats, Target,
};
use serde_json::{Map, Value};

use super::memory::Backlog;
use super::rig::{Rig, SCRIPT_MICROS_MAX};
use super::zset_scripts::wall_ms;
use super::{Findings, RedisPlan};
use crate::client::{Client, unexpected};
use crate::plan::{SPREAD_MS, Shuffled};
use crate::{Result, progress};

const PAGE: usize = 1_000;
const PAGES: usize = 20;
const BATCH: u64 = 1_000;

/// The slowest script of a verb.
struct Slowest {
    verb: &'static str,
    cpu_us: u64,
    /// By SLOWLOG; 0 = it was too fast for it.
    log_us: u64,
}

/// Verbs on a backlog.
struct Trial<'a> {
    rig: &'a Rig,
    client: Client,
    backlog: &'a Backlog,
    shuffled: Shuffled,
    /// Jobs of the shuffled order that were chosen.
    chosen: u64,
    /// Of the verb that is measured now.
    cpu_us: u64,
    slowest: Vec<Slowest>,
}

/// All verbs on the backlog; purge is the last.
pub(super) fn run(
    rig: &Rig,
    plan: &RedisPlan,
    backlog: &Backlog,
    found: &mut Findings,
) -> Result<()> {
    looks(rig, plan, backlog, "30 days", found)?;
    let mut trial = Trial::new(rig, plan, backlog);
    let topic = || backlog.topic.clone();
    let batch = trial.random_ids(BATCH);
    let cancel = |&id: &JobId| Cancel { target: Target::Id(id), unless_leased: false };
    trial.ask("cancel", [Command::Cancel(batch.iter().map(cancel).collect())])?;
    let batch = trial.random_ids(BATCH);
    let later = |&id: &JobId| Reschedule {
        target: Target::Id(id),
        delay_ms: Some(SPREAD_MS.cast_signed()),
        at_ms: None,
    };
    trial.ask("reschedule", [Command::Reschedule(batch.iter().map(later).collect())])?;
    let ids = trial.random_ids(BATCH / 10).into_iter();
    let take = |id| Command::ReserveId(ReserveId { id, ttr_ms: None, session: None });
    trial.ask("reserve_id", ids.map(take))?;
    trial.ask("kick", [Command::Kick(Kick { topic: topic(), max: 10_000 })])?;
    let list = List {
        topic: topic(),
        state: State::Ready,
        cursor: None,
        limit: PAGE,
        range: ListRange::default(),
    };
    trial.ask("list ready", [Command::List(list)])?;
    trial.ask("purge", [Command::Purge(topic().into())])?;
    trial.report("30 days, changes", found);
    Ok(())
}

/// Verbs that change nothing.
pub(super) fn looks(
    rig: &Rig,
    plan: &RedisPlan,
    backlog: &Backlog,
    what: &str,
    found: &mut Findings,
) -> Result<()> {
    progress::note(&format!("verbs: {} jobs over {what}", backlog.ids.len()));
    let mut trial = Trial::new(rig, plan, backlog);
    let topic = || backlog.topic.clone();
    trial.ask("stats", [Command::Stats(Stats { topic: Some(topic()) })])?;
    let states = [State::Delayed, State::Ready, State::Leased, State::Dead];
    trial.ask("peek", states.map(|state| Command::Peek(Peek { topic: topic(), state })))?;
    for state in states {
        trial.list(state)?;
    }
    let batch = trial.random_ids(BATCH);
    trial.ask("get", [Command::Get(batch.into_iter().map(Target::Id).collect())])?;
    let (from_ms, step_ms) = (wall_ms(), SPREAD_MS / 999);
    let forecast = Forecast { topic: topic(), from_ms, to_ms: from_ms + 999 * step_ms, step_ms };
    trial.ask("forecast", [Command::Forecast(forecast)])?;
    trial.report(what, found);
    Ok(())
}

impl<'a> Trial<'a> {
    fn new(rig: &'a Rig, plan: &RedisPlan, backlog: &'a Backlog) -> Trial<'a> {
        let shuffled = Shuffled::new(backlog.ids.len() as u64, plan.seed);
        let client = rig.client();
        Trial { rig, client, backlog, shuffled, chosen: 0, cpu_us: 0, slowest: Vec::new() }
    }

    /// Jobs of the whole backlog that were not chosen before.
    fn random_ids(&mut self, count: u64) -> Vec<JobId> {
        let numbers = self.chosen..self.chosen + count;
        self.chosen = numbers.end;
        let job = |number| usize::try_from(self.shuffled.at(number)).ok();
        let id = |number| self.backlog.ids.get(job(number)?).copied();
        numbers.filter_map(id).collect()
    }

    fn ask(
        &mut self,
        verb: &'static str,
        commands: impl IntoIterator<Item = Command>,
    ) -> Result<()> {
        self.rig.server.reset_stats();
        for command in commands {
            self.timed(command)?;
        }
        self.note(verb);
        Ok(())
    }

    /// The first pages of a state.
    fn list(&mut self, state: State) -> Result<()> {
        self.rig.server.reset_stats();
        let mut cursor = None;
        for _ in 0..PAGES {
            let list = List {
                topic: self.backlog.topic.clone(),
                state,
                cursor,
                limit: PAGE,
                range: ListRange::default(),
            };
            match self.timed(Command::List(list))? {
                Reply::Page(page) => cursor = page.cursor,
                other => return Err(unexpected("list", &other)),
            }
            if cursor.is_none() {
                break;
            }
        }
        self.note(match state {
            State::Delayed => "list delayed",
            State::Ready => "list ready",
            State::Leased => "list leased",
            State::Dead => "list dead",
            State::Done => "list done",
        });
        Ok(())
    }

    /// Asks, and notes Redis' processor time for a script: their average, if there are several.
    fn timed(&mut self, command: Command) -> Result<Reply> {
        let server = &self.rig.server;
        let (scripts, before) = (server.scripts_run(), server.cpu());
        let reply = self.client.call(command)?;
        let spent = server.cpu().saturating_sub(before);
        let scripts = server.scripts_run().saturating_sub(scripts).max(1);
        self.cpu_us = self.cpu_us.max(u64::try_from(spent.as_micros())? / scripts);
        Ok(reply)
    }

    fn note(&mut self, verb: &'static str) {
        let log_us = self.rig.slow_scripts().first().map_or(0, |script| script.micros);
        let cpu_us = std::mem::take(&mut self.cpu_us);
        self.slowest.push(Slowest { verb, cpu_us, log_us });
    }

    /// One line of all verbs.
    fn report(self, what: &str, found: &mut Findings) {
        let slowest = self.slowest.iter().map(|slowest| slowest.cpu_us).max().unwrap_or(0);
        let log_us = self.slowest.iter().map(|slowest| slowest.log_us).max().unwrap_or(0);
        let verb = |slowest: &Slowest| format!("{} {}", slowest.verb, slowest.cpu_us);
        let verbs: Vec<String> = self.slowest.iter().map(verb).collect();
        let more = format!("{}; {log_us} us, waiting for a processor included", verbs.join(", "));
        let measure = format!("{} jobs ({what}): slowest script, CPU us", self.backlog.ids.len());
        found.table.at_most(&measure, SCRIPT_MICROS_MAX as f64, slowest as f64, &more);
        let figure = |slowest: &Slowest| {
            let name = format!("slowest_{what}_{}_cpu_us", slowest.verb).replace([' ', ','], "_");
            (name, Value::from(slowest.cpu_us))
        };
        let figures: Map<String, Value> = self.slowest.iter().map(figure).collect();
        found.figures.extend(figures);
    }
}
