//! Merging neighbouring runs: which, and how the result is swapped in.
//!
//! A finished merge waits for the next freeze: it is swapped in just before the checkpoint, so the
//! flush that follows is the first whose manifest lists the output, and every pending manifest
//! still lists the inputs. Its bounds need no work: an output has the age of its newest input.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::task::Work;
use super::{Store, Task};
use crate::manifest::RunRef;
use crate::run::Run;
use crate::timeline::OpenRun;

/// Beyond this many runs, neighbours are merged whatever their sizes.
const RUNS_MAX: usize = 64;

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

/// The figures of a run that decide the choice.
#[derive(Clone, Copy, Debug)]
struct Weight {
    bytes: u64,
    entries: u64,
    consumed: u64,
}

impl Store {
    /// The next merge worth doing, unless one is under way.
    pub fn merge_task(&mut self) -> Option<Task> {
        if self.merge.is_some() {
            return None;
        }
        let sources = &self.machine.timeline().sources;
        let durable = |open: &OpenRun| self.manifest.runs.iter().any(|run| run.no == open.no());
        let weights: Vec<Weight> =
            sources.runs.iter().take_while(|open| durable(open)).map(weigh).collect();
        let tier_bytes = self.sizes.memtable_bytes as u64;
        let chosen = choose(&weights, self.sizes.merge_runs, tier_bytes)?;
        // Merges stop first: they must never take the room that the journal needs.
        let output_max: u64 = weights[chosen.clone()].iter().map(|run| run.bytes).sum();
        if self.space_free() < output_max.saturating_add(self.space_needed()) {
            return None;
        }
        self.begin_merge(chosen)
    }

    /// Begins to merge these runs, by their position.
    pub fn begin_merge(&mut self, chosen: Range<usize>) -> Option<Task> {
        let sources = &mut self.machine.timeline_mut().sources;
        let inputs: Vec<Arc<Run>> =
            sources.runs.get(chosen.clone())?.iter().map(|open| Arc::clone(&open.run)).collect();
        let age = inputs.last()?.meta().age;
        sources.begin_merge(chosen);
        let frontiers = Box::new(sources.frontiers.clone());
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
        self.machine.timeline_mut().change_sources(|sources| {
            let consumed = sources.end_merge();
            // Inputs that were consumed whole meanwhile may be gone from the list.
            let at = sources.runs.partition_point(|open| open.age() < run.meta().age);
            let at = sources.runs[..at].iter().filter(|o| !inputs.contains(&o.no())).count();
            sources.runs.retain(|open| !inputs.contains(&open.no()));
            sources.runs.insert(at, OpenRun { run, consumed, merging: false });
        });
    }
}

fn weigh(open: &OpenRun) -> Weight {
    let meta = open.run.meta();
    Weight { bytes: meta.bytes, entries: meta.entries, consumed: open.consumed }
}

/// Which neighbours to merge: a run that is mostly consumed is rewritten alone; `fan` neighbours of
/// the smallest size class, or twice as many of another, become one of the next; too many runs lose
/// their lightest stretch.
fn choose(runs: &[Weight], fan: usize, tier_bytes: u64) -> Option<Range<usize>> {
    let mostly_consumed = |run: &Weight| {
        run.consumed < run.entries
            && run.consumed.saturating_mul(8) >= run.entries.saturating_mul(7)
    };
    if let Some(index) = runs.iter().position(mostly_consumed) {
        return Some(index..index + 1);
    }
    let fan = fan.max(2);
    let tier = |run: &Weight| {
        let mut tier = 0;
        let mut bytes = run.bytes;
        while bytes > tier_bytes.saturating_mul(2) {
            bytes /= fan as u64;
            tier += 1;
        }
        tier
    };
    let mut start = 0;
    for end in 1..=runs.len() {
        if tier(&runs[end - 1]) != tier(&runs[start]) {
            start = end - 1;
        }
        // Large runs are rewritten reluctantly: that costs more than reading a few more of them.
        let enough = if tier(&runs[start]) == 0 { fan } else { 2 * fan };
        if end - start == enough {
            return Some(start..end);
        }
    }
    if runs.len() <= RUNS_MAX {
        return None;
    }
    let lightest = (0..=runs.len() - fan.min(runs.len()))
        .min_by_key(|start| runs[*start..].iter().take(fan).map(|run| run.bytes).sum::<u64>())?;
    Some(lightest..(lightest + fan).min(runs.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(bytes: u64, consumed: u64) -> Weight {
        Weight { bytes, entries: 100, consumed }
    }

    #[test]
    fn neighbours_of_one_size_are_merged() {
        let runs = [run(9_000, 0), run(100, 0), run(90, 0), run(120, 0)];
        assert_eq!(choose(&runs, 3, 100), Some(1..4));
        assert_eq!(choose(&runs[..3], 3, 100), None);
    }

    #[test]
    fn a_mostly_consumed_run_is_rewritten() {
        assert_eq!(choose(&[run(100, 10), run(100, 90)], 16, 100), Some(1..2));
        // One that is consumed whole is simply dropped by the next manifest.
        assert_eq!(choose(&[run(100, 100)], 16, 100), None);
    }

    #[test]
    fn too_many_runs_lose_their_lightest_stretch() {
        let mut runs: Vec<Weight> =
            (0..70).map(|i| run(if i % 2 == 0 { 100 } else { 9_000 }, 0)).collect();
        runs[31] = run(300, 0);
        assert_eq!(choose(&runs, 3, 100), Some(30..33));
    }
}
