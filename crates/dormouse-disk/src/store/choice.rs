//! Which neighbouring runs to merge: a pure choice by the figures of all runs.
//!
//! Most jobs of a delay queue are cancelled. A cancelled job rests in one run and its tombstone in
//! a newer one, so both take space, and time when they come due, until a merge of the two runs lets
//! them vanish. Samples of the ids tell how much a merge of some neighbours would free.

use std::ops::Range;

use crate::run::IdSamples;

/// Beyond this many runs, neighbours are merged whatever their sizes.
const RUNS_MAX: usize = 64;
/// Bytes of a tombstone in a run, about: its entry and its place in the ids table.
const TOMBSTONE_BYTES: u64 = 26;
/// Neighbours are merged for their cancelled jobs if that frees one part in so many.
const FREED_PART: u64 = 3;

/// The figures of a run that decide the choice.
#[derive(Clone, Debug, Default)]
pub(super) struct RunFigures {
    pub(super) bytes: u64,
    pub(super) entries: u64,
    pub(super) tombstones: u64,
    /// Entries that a merge would not copy, at least.
    pub(super) consumed: u64,
    pub(super) samples: Option<IdSamples>,
}

impl RunFigures {
    /// How many of so many entries are unread, if they are spread evenly.
    fn unread(&self, count: u64) -> u64 {
        let left = self.entries.saturating_sub(self.consumed);
        let unread = u128::from(count) * u128::from(left) / u128::from(self.entries.max(1));
        u64::try_from(unread).unwrap_or(u64::MAX)
    }

    /// Bytes that a merge reads.
    fn unread_bytes(&self) -> u64 {
        self.unread(self.bytes)
    }

    /// Bytes of one job, on average.
    fn job_bytes(&self) -> u64 {
        let jobs = self.entries.saturating_sub(self.tombstones);
        self.bytes.saturating_sub(self.tombstones * TOMBSTONE_BYTES) / jobs.max(1)
    }

    fn job_range(&self) -> Option<(u64, u64)> {
        self.samples.as_ref()?.jobs.range()
    }
}

/// Which neighbours to merge, oldest first: a run that is mostly consumed is rewritten alone;
/// neighbours with many cancelled jobs lose them; `fan` neighbours of the smallest size class, or
/// twice as many of another, become one of the next; too many runs lose their lightest stretch.
pub(super) fn choose(runs: &[RunFigures], fan: usize, tier_bytes: u64) -> Option<Range<usize>> {
    mostly_consumed(runs)
        .or_else(|| mostly_cancelled(runs, tier_bytes))
        .or_else(|| one_tier(runs, fan, tier_bytes))
        .or_else(|| lightest(runs, fan))
}

fn mostly_consumed(runs: &[RunFigures]) -> Option<Range<usize>> {
    let is_mostly_consumed = |run: &RunFigures| {
        run.consumed < run.entries
            && run.consumed.saturating_mul(8) >= run.entries.saturating_mul(7)
    };
    let index = runs.iter().position(is_mostly_consumed)?;
    Some(index..index + 1)
}

/// The neighbours whose merge frees the most for what it reads, if that is worth it. Small change
/// is left for the merges that come anyway.
fn mostly_cancelled(runs: &[RunFigures], tier_bytes: u64) -> Option<Range<usize>> {
    let freed_min = tier_bytes / 8;
    let freed = freed_by_pair(runs);
    let mut best: Option<(u64, u64, Range<usize>)> = None;
    for start in 0..runs.len() {
        let (mut freed_bytes, mut read_bytes) = (0_u64, 0_u64);
        for end in start..runs.len() {
            read_bytes += runs[end].unread_bytes();
            freed_bytes += freed[end][start..end].iter().sum::<u64>();
            let is_worth_it =
                freed_bytes >= freed_min && freed_bytes.saturating_mul(FREED_PART) >= read_bytes;
            let is_better = best.as_ref().is_none_or(|(freed, read, _)| {
                u128::from(freed_bytes) * u128::from(*read)
                    > u128::from(*freed) * u128::from(read_bytes)
            });
            if is_worth_it && is_better {
                best = Some((freed_bytes, read_bytes, start..end + 1));
            }
        }
    }
    best.map(|(_, _, range)| range)
}

/// `[newer][older]`: bytes that vanish when tombstones of the newer run meet jobs of the older one.
fn freed_by_pair(runs: &[RunFigures]) -> Vec<Vec<u64>> {
    let ranges: Vec<_> = runs.iter().map(RunFigures::job_range).collect();
    let freed = |(newer, run): (usize, &RunFigures)| {
        let mut freed = vec![0; newer];
        let Some(samples) = &run.samples else { return freed };
        let ids = samples.tombstones.ids();
        let unread = run.unread(run.tombstones);
        if unread == 0 || ids.is_empty() {
            return freed;
        }
        let mut hits = vec![0.0; newer];
        for id in ids {
            let has = |range: &Option<(u64, u64)>| {
                range.is_some_and(|(low, high)| (low..=high).contains(id))
            };
            // An id that several runs may have counts for each of them, by the number of its jobs.
            let homes = || ranges[..newer].iter().enumerate().filter(|(_, range)| has(range));
            let jobs = |older: usize| (runs[older].entries - runs[older].tombstones) as f64;
            let all: f64 = homes().map(|(older, _)| jobs(older)).sum();
            for (older, _) in homes() {
                hits[older] += jobs(older) / all.max(1.0);
            }
        }
        for (older, hits) in hits.into_iter().enumerate() {
            // No more can vanish than there are jobs.
            let jobs = runs[older].unread(runs[older].entries - runs[older].tombstones);
            let pairs = ((unread as f64 * hits / ids.len() as f64) as u64).min(jobs);
            freed[older] = pairs.saturating_mul(runs[older].job_bytes() + TOMBSTONE_BYTES);
        }
        freed
    };
    runs.iter().enumerate().map(freed).collect()
}

fn one_tier(runs: &[RunFigures], fan: usize, tier_bytes: u64) -> Option<Range<usize>> {
    let fan = fan.max(2);
    let tier = |run: &RunFigures| {
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
    None
}

fn lightest(runs: &[RunFigures], fan: usize) -> Option<Range<usize>> {
    if runs.len() <= RUNS_MAX {
        return None;
    }
    let fan = fan.max(2);
    let lightest = (0..=runs.len() - fan.min(runs.len()))
        .min_by_key(|start| runs[*start..].iter().take(fan).map(|run| run.bytes).sum::<u64>())?;
    Some(lightest..(lightest + fan).min(runs.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::IdSample;

    fn run(bytes: u64, consumed: u64) -> RunFigures {
        RunFigures { bytes, entries: 100, consumed, ..RunFigures::default() }
    }

    /// A run of jobs with these ids and tombstones for those, one byte in a hundred a job.
    fn cancelled(jobs: Range<u64>, tombstones: Range<u64>) -> RunFigures {
        let (job_count, tombstone_count) =
            (jobs.end - jobs.start, tombstones.end - tombstones.start);
        RunFigures {
            bytes: job_count * 100 + tombstone_count * TOMBSTONE_BYTES,
            entries: job_count + tombstone_count,
            tombstones: tombstone_count,
            consumed: 0,
            samples: Some(IdSamples {
                jobs: IdSample::of(jobs),
                tombstones: IdSample::of(tombstones),
            }),
        }
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
        let mut runs: Vec<RunFigures> =
            (0..70).map(|i| run(if i % 2 == 0 { 100 } else { 9_000 }, 0)).collect();
        runs[31] = run(300, 0);
        assert_eq!(choose(&runs, 3, 100), Some(30..33));
    }

    #[test]
    fn cancelled_jobs_are_merged_with_their_tombstones() {
        let jobs = |start: u64| cancelled(start..start + 1_000, 0..0);
        // The third run cancels what is in the second: the first is left alone.
        let runs = [jobs(0), jobs(1_000), cancelled(2_000..2_100, 1_000..2_000)];
        assert_eq!(choose(&runs, 16, 10_000), Some(1..3));
        // Tombstones for jobs that are nowhere here free nothing.
        let runs = [jobs(5_000), jobs(6_000), cancelled(7_000..7_100, 0..1_000)];
        assert_eq!(choose(&runs, 16, 10_000), None);
        // A few cancelled jobs among many are not worth a merge.
        let runs = [jobs(0), jobs(1_000), cancelled(2_000..3_000, 900..1_100)];
        assert_eq!(choose(&runs, 16, 10_000), None);
    }

    #[test]
    fn a_few_jobs_with_ids_of_many_runs_attract_no_merge() {
        let retried = RunFigures {
            bytes: 10_000,
            entries: 100,
            samples: cancelled(0..20_000, 0..0).samples,
            ..RunFigures::default()
        };
        let runs = [cancelled(0..20_000, 0..0), retried, cancelled(0..0, 0..5_000)];
        assert_eq!(mostly_cancelled(&runs[1..], 10_000), None);
        assert_eq!(mostly_cancelled(&runs, 10_000), None);
    }

    #[test]
    fn what_is_consumed_frees_nothing() {
        let jobs = cancelled(0..1_000, 0..0);
        let tombstones = cancelled(0..0, 0..1_000);
        assert_eq!(choose(&[jobs.clone(), tombstones.clone()], 16, 10_000), Some(0..2));
        let consumed = RunFigures { consumed: 990, ..tombstones.clone() };
        assert!(mostly_cancelled(&[jobs, consumed], 10_000).is_none());
    }

    #[test]
    fn all_runs_are_merged_if_all_is_cancelled() {
        let runs: Vec<RunFigures> = (0..8)
            .map(|no| cancelled(no * 1_000..no * 1_000 + 1_000, 0..0))
            .chain((0..8).map(|no| cancelled(0..0, no * 1_000..no * 1_000 + 1_000)))
            .collect();
        assert_eq!(choose(&runs, 32, 10_000), Some(0..16));
    }
}
