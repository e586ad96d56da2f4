//! Merging neighbouring runs: which, and how the result is swapped in.
//!
//! A finished merge waits for the next freeze: it is swapped in just before the checkpoint, so the
//! flush that follows is the first whose manifest lists the output, and every pending manifest
//! still lists the inputs. Its bounds need no work: an output has the age of its newest input.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::choice::{ChoiceTerms, choose};
use super::task::Work;
use super::{Store, Task};
use crate::manifest::RunRef;
use crate::run::Run;
use crate::timeline::{Coverage, OpenRun};

/// A merge under way.
pub(super) struct Merge {
    run: RunRef,
    inputs: Vec<u64>,
    /// The output, once it is written.
    output: Option<Arc<Run>>,
    stop: Arc<AtomicBool>,
}

impl Merge {
    pub(super) fn is_ready(&self) -> bool {
        self.output.is_some()
    }

    pub(super) fn names(&self, no: u64) -> bool {
        self.run.no == no || self.inputs.contains(&no)
    }
}

impl Store {
    /// The next merge worth doing, or a look at what was purged, unless one is under way.
    pub fn merge_task(&mut self) -> Option<Task> {
        if self.merge.is_some() || self.run_notes.is_weighing() {
            return None;
        }
        if let Some(task) = self.weigh_task() {
            return Some(task);
        }
        let runs = self.run_figures();
        if runs.is_empty() {
            return None;
        }
        let terms = ChoiceTerms {
            fan: self.sizes.merge_runs,
            tier_bytes: self.sizes.memtable_bytes as u64,
            // Merges stop first: they must never take the room that the journal needs.
            room_bytes: self.space_free().saturating_sub(self.space_needed()),
        };
        self.begin_merge(choose(&runs, terms)?)
    }

    /// Begins to merge these runs, by their position.
    pub fn begin_merge(&mut self, chosen: Range<usize>) -> Option<Task> {
        let sources = &mut self.machine.timeline_mut().sources;
        let inputs: Vec<Arc<Run>> =
            sources.runs.get(chosen.clone())?.iter().map(|open| Arc::clone(&open.run)).collect();
        let age = inputs.last()?.meta().age;
        sources.begin_merge(chosen);
        let frontiers = Box::new(sources.frontiers.snapshot());
        let run = RunRef { no: self.next_run, age };
        self.next_run += 1;
        let stop = Arc::new(AtomicBool::new(false));
        self.merge = Some(Merge {
            run,
            inputs: inputs.iter().map(|run| run.meta().no).collect(),
            output: None,
            stop: Arc::clone(&stop),
        });
        Some(Task(Work::Merge { run, inputs, frontiers, stop }))
    }

    /// Runs that a merge could take now.
    pub fn mergeable_runs(&self) -> usize {
        let sources = &self.machine.timeline().sources;
        let listed = |no| self.manifest.runs.iter().any(|run| run.no == no);
        sources.runs.iter().take_while(|open| listed(open.no())).count()
    }

    /// Asks a merge under way to give up.
    pub fn stop_merge(&self) {
        if let Some(merge) = &self.merge {
            merge.stop.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn finish_merge(&mut self, run: Option<Arc<Run>>) {
        match (&mut self.merge, run) {
            (Some(merge), Some(run)) => {
                self.run_files.insert(run.meta().no);
                merge.output = Some(run);
            }
            _ => {
                self.merge = None;
                self.machine.timeline_mut().sources.end_merge();
            }
        }
    }

    /// Replaces the inputs of a finished merge by its output.
    pub(super) fn swap_in_merge(&mut self) {
        let Some(Merge { inputs, output: Some(run), .. }) =
            self.merge.take_if(|merge| merge.is_ready())
        else {
            return;
        };
        let merged = self.machine.timeline_mut().change_sources(|sources| {
            let consumed = sources.end_merge();
            // Inputs that were consumed whole meanwhile may be gone from the list.
            let at = sources.runs.partition_point(|open| open.age() < run.meta().age);
            let at = sources.runs[..at].iter().filter(|o| !inputs.contains(&o.no())).count();
            let covered = sources.runs.iter().filter(|open| open.is_covered());
            let covered = covered.filter(|open| inputs.contains(&open.no())).count();
            let merged = sources.remove_runs(|no| inputs.contains(&no));
            let mut output = OpenRun::new(run, consumed);
            if covered == inputs.len() {
                output.coverage = Coverage::Covered;
            }
            sources.runs.insert(at, output);
            merged
        });
        self.leftovers.runs.extend(merged);
    }
}
