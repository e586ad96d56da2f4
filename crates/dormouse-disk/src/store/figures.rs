//! The figures of runs that a merge is chosen by: those of the run itself, how fast it is being
//! consumed, and how much of it was purged.
//!
//! A purge marks a topic as consumed and looks into no run. So now and then, after a purge, the
//! merge thread looks through the lanes of all runs for those of purged topics.

use std::sync::Arc;

use dormouse_core::Map;

use super::choice::RunFigures;
use super::task::Work;
use super::{Store, Task};
use crate::damage::Damage;
use crate::frontier::Frontiers;
use crate::run::Run;
use crate::timeline::OpenRun;

/// How often the consumption of runs is noted.
const PACE_MS: u64 = 5_000;
/// A run that is consumed whole within this time is not rewritten before.
const SOON_MS: u64 = 60_000;
/// How often runs are looked through for purged jobs, at most.
const WEIGH_MS: u64 = 5_000;

/// Entries of a run that were consumed at an instant.
#[derive(Clone, Copy, Debug)]
struct Consumed {
    at: u64,
    entries: u64,
}

/// The last two notes of a run's consumption, at least `PACE_MS` apart.
#[derive(Clone, Copy, Debug)]
struct Pace {
    before: Option<Consumed>,
    last: Consumed,
}

impl Pace {
    /// Whether the run is consumed whole soon, if that goes on as it did lately. Of a new run
    /// nothing is known yet: it may be.
    fn is_gone_soon(&self, now: Consumed, entries: u64) -> bool {
        let since = if now.at.saturating_sub(self.last.at) >= PACE_MS {
            Some(self.last)
        } else {
            self.before
        };
        let Some(since) = since else { return true };
        let consumed = now.entries.saturating_sub(since.entries);
        let passed_ms = now.at.saturating_sub(since.at);
        let left = entries.saturating_sub(now.entries);
        consumed > 0
            && u128::from(left) * u128::from(passed_ms) < u128::from(consumed) * u128::from(SOON_MS)
    }

    fn note(&mut self, now: Consumed) {
        if now.at.saturating_sub(self.last.at) >= PACE_MS {
            *self = Pace { before: Some(self.last), last: now };
        }
    }
}

/// What is known of runs besides their own figures.
#[derive(Default)]
pub(super) struct RunNotes {
    paces: Map<u64, Pace>,
    /// Entries of purged topics, by run.
    purged: Map<u64, u64>,
    weighed_at: Option<u64>,
    is_weighing: bool,
}

impl RunNotes {
    pub(super) fn is_weighing(&self) -> bool {
        self.is_weighing
    }

    /// Runs were looked through.
    pub(super) fn weighed(&mut self, purged: Map<u64, u64>) {
        self.is_weighing = false;
        self.purged = purged;
    }

    fn figures(&mut self, open: &OpenRun, at: u64) -> RunFigures {
        let meta = open.run.meta();
        let now = Consumed { at, entries: open.consumed };
        let pace = self.paces.entry(open.no()).or_insert(Pace { before: None, last: now });
        let is_gone_soon = pace.is_gone_soon(now, meta.entries);
        pace.note(now);
        RunFigures {
            bytes: meta.bytes,
            entries: meta.entries,
            tombstones: meta.tombstones,
            consumed: open.consumed,
            purged: self.purged.get(&open.no()).copied().unwrap_or(0).min(meta.entries),
            is_gone_soon,
            samples: meta.samples.clone(),
        }
    }
}

impl Store {
    /// The figures of the runs that a merge could take now.
    pub(super) fn run_figures(&mut self) -> Vec<RunFigures> {
        let (at, count) = (self.ticked_at, self.mergeable_runs());
        let runs = &self.machine.timeline().sources.runs;
        self.run_notes.paces.retain(|no, _| runs.iter().any(|open| open.no() == *no));
        let notes = &mut self.run_notes;
        runs.iter().take(count).map(|open| notes.figures(open, at)).collect()
    }

    /// A look through all runs for jobs that were purged, if there may be some.
    pub(super) fn weigh_task(&mut self) -> Option<Task> {
        let is_early = |at: u64| self.ticked_at.saturating_sub(at) < WEIGH_MS;
        let sources = &mut self.machine.timeline_mut().sources;
        if sources.purged_jobs == 0 || sources.runs.is_empty() {
            return None;
        }
        if self.run_notes.weighed_at.is_some_and(is_early) {
            return None;
        }
        // What is frozen becomes a run later: it has to be looked through then.
        if sources.frozen.is_empty() {
            sources.purged_jobs = 0;
        }
        let runs = sources.runs.iter().map(|open| Arc::clone(&open.run)).collect();
        let frontiers = Box::new(sources.frontiers.snapshot());
        self.run_notes.weighed_at = Some(self.ticked_at);
        self.run_notes.is_weighing = true;
        Some(Task(Work::Weigh { runs, frontiers }))
    }
}

/// Entries of purged topics, by run.
pub(super) fn weigh(runs: &[Arc<Run>], frontiers: &Frontiers) -> Result<Map<u64, u64>, Damage> {
    let mut purged = Map::default();
    for run in runs {
        let (no, age) = (run.meta().no, run.meta().age);
        let entries = run.entries_of(&|topic| frontiers.is_purged(topic, age))?;
        purged.insert(no, entries);
    }
    Ok(purged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_gone_soon_if_it_is_consumed_fast() {
        let note = |at, entries| Consumed { at, entries };
        let mut pace = Pace { before: None, last: note(0, 800) };
        // A new run may be consumed at once.
        assert!(pace.is_gone_soon(note(1_000, 800), 1_000));
        // 10 entries in 5 s: the other 190 take longer than a minute; 20: they do not.
        assert!(!pace.is_gone_soon(note(PACE_MS, 810), 1_000));
        assert!(pace.is_gone_soon(note(PACE_MS, 820), 1_000));
        pace.note(note(PACE_MS, 820));
        assert!(pace.is_gone_soon(note(PACE_MS + 1, 820), 1_000));
        // It stands still.
        assert!(!pace.is_gone_soon(note(2 * PACE_MS, 820), 1_000));
        pace.note(note(2 * PACE_MS, 820));
        assert!(!pace.is_gone_soon(note(2 * PACE_MS + 1, 820), 1_000));
    }
}
