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
/// Neighbours are merged for their cancelled and purged jobs if that frees one part in so many.
const FREED_PART: u64 = 3;
/// Runs are not rewritten for less than one part in so many of a memtable.
const SMALL_PART: u64 = 8;

/// The figures of a run that decide the choice.
#[derive(Clone, Debug, Default)]
pub(super) struct RunFigures {
    pub(super) bytes: u64,
    pub(super) entries: u64,
    pub(super) tombstones: u64,
    /// Entries that a merge would not copy, at least.
    pub(super) consumed: u64,
    /// Entries of topics that were purged since, about; some may be consumed as well.
    pub(super) purged: u64,
    /// Its jobs are being consumed so fast that it is gone before a merge pays off.
    pub(super) is_gone_soon: bool,
    pub(super) samples: Option<IdSamples>,
}

impl RunFigures {
    /// How many of so many entries are unread, if they are spread evenly.
    fn unread(&self, count: u64) -> u64 {
        self.part(count, self.entries.saturating_sub(self.consumed + self.purged))
    }

    /// `count`, of all entries, as it falls on so many of them.
    fn part(&self, count: u64, entries: u64) -> u64 {
        let part = u128::from(count) * u128::from(entries) / u128::from(self.entries.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// Bytes that a merge reads.
    fn unread_bytes(&self) -> u64 {
        self.unread(self.bytes)
    }

    /// Bytes that a merge frees because their topic was purged.
    fn purged_bytes(&self) -> u64 {
        self.part(self.bytes, self.purged.min(self.entries.saturating_sub(self.consumed)))
    }

    /// Bytes that a merge may have to write: entries are not spread quite evenly, and what is
    /// purged may be consumed as well.
    fn output_max(&self) -> u64 {
        let unread = self.entries.saturating_sub(self.consumed.max(self.purged));
        self.part(self.bytes, unread).saturating_mul(2).min(self.bytes)
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

/// What a choice must keep to.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChoiceTerms {
    /// The number of neighbours of the smallest size class that become one.
    pub(super) fan: usize,
    /// The size of a memtable: runs up to twice that are of the smallest size class.
    pub(super) tier_bytes: u64,
    /// Bytes that the output may take.
    pub(super) room_bytes: u64,
}

impl ChoiceTerms {
    /// Whether the output of a merge of these has room.
    fn fits(&self, runs: &[RunFigures]) -> bool {
        let output = runs.iter().map(RunFigures::output_max).fold(0_u64, u64::saturating_add);
        output <= self.room_bytes
    }

    /// Less than this is left for the merges that come anyway.
    fn freed_min(&self) -> u64 {
        self.tier_bytes / SMALL_PART
    }
}

/// Which neighbours to merge, oldest first: runs that are mostly consumed are rewritten;
/// neighbours with many cancelled or purged jobs lose them; `fan` neighbours of the smallest size
/// class, or twice as many of another, become one of the next; too many runs lose their lightest
/// stretch. A merge that has no room is passed over for the next that has.
pub(super) fn choose(runs: &[RunFigures], terms: ChoiceTerms) -> Option<Range<usize>> {
    mostly_consumed(runs, terms)
        .or_else(|| mostly_cancelled(runs, terms))
        .or_else(|| one_tier(runs, terms))
        .or_else(|| lightest(runs, terms))
}

/// Neighbours of which seven parts in eight are consumed, and which will not be gone soon anyway.
fn mostly_consumed(runs: &[RunFigures], terms: ChoiceTerms) -> Option<Range<usize>> {
    let is_mostly_consumed = |run: &RunFigures| {
        run.consumed < run.entries
            && run.consumed.saturating_mul(8) >= run.entries.saturating_mul(7)
            && !run.is_gone_soon
    };
    let mut start = 0;
    while start < runs.len() {
        let alike = runs[start..].iter().take_while(|run| is_mostly_consumed(run)).count();
        let chosen = start..start + alike;
        let freed = |run: &RunFigures| run.bytes - run.unread_bytes();
        let freed_bytes: u64 = runs[chosen.clone()].iter().map(freed).sum();
        let is_worth_it = alike > 0 && freed_bytes >= terms.freed_min();
        if is_worth_it && terms.fits(&runs[chosen.clone()]) {
            return Some(chosen);
        }
        start += alike + 1;
    }
    None
}

/// The neighbours whose merge frees the most for what it reads, if that is worth it. Small change
/// is left for the merges that come anyway.
fn mostly_cancelled(runs: &[RunFigures], terms: ChoiceTerms) -> Option<Range<usize>> {
    let freed = freed_by_pair(runs);
    let mut best: Option<(u64, u64, Range<usize>)> = None;
    for start in 0..runs.len() {
        let (mut freed_bytes, mut read_bytes) = (0_u64, 0_u64);
        for end in start..runs.len() {
            read_bytes += runs[end].unread_bytes();
            freed_bytes += freed[end][start..end].iter().sum::<u64>() + runs[end].purged_bytes();
            let is_worth_it = freed_bytes >= terms.freed_min()
                && freed_bytes.saturating_mul(FREED_PART) >= read_bytes;
            let is_better = best.as_ref().is_none_or(|(freed, read, _)| {
                u128::from(freed_bytes) * u128::from(*read)
                    > u128::from(*freed) * u128::from(read_bytes)
            });
            if is_worth_it && is_better && terms.fits(&runs[start..=end]) {
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

fn one_tier(runs: &[RunFigures], terms: ChoiceTerms) -> Option<Range<usize>> {
    let fan = terms.fan.max(2);
    let tier = |run: &RunFigures| {
        let mut tier = 0;
        let mut bytes = run.bytes;
        while bytes > terms.tier_bytes.saturating_mul(2) {
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
            if terms.fits(&runs[start..end]) {
                return Some(start..end);
            }
            start += 1;
        }
    }
    None
}

/// The lightest `fan` neighbours; two, if there is no room for more.
fn lightest(runs: &[RunFigures], terms: ChoiceTerms) -> Option<Range<usize>> {
    if runs.len() <= RUNS_MAX {
        return None;
    }
    let of_length = |length: usize| {
        let bytes =
            |start: &usize| runs[*start..*start + length].iter().map(|run| run.bytes).sum::<u64>();
        let start = (0..=runs.len() - length).min_by_key(bytes)?;
        terms.fits(&runs[start..start + length]).then_some(start..start + length)
    };
    of_length(terms.fan.clamp(2, runs.len())).or_else(|| of_length(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::IdSample;

    fn run(bytes: u64, consumed: u64) -> RunFigures {
        RunFigures { bytes, entries: 100, consumed, ..RunFigures::default() }
    }

    fn terms(fan: usize, tier_bytes: u64) -> ChoiceTerms {
        ChoiceTerms { fan, tier_bytes, room_bytes: u64::MAX }
    }

    fn choose(runs: &[RunFigures], fan: usize, tier_bytes: u64) -> Option<Range<usize>> {
        super::choose(runs, terms(fan, tier_bytes))
    }

    /// A run of jobs with these ids and tombstones for those, one byte in a hundred a job.
    fn cancelled(jobs: Range<u64>, tombstones: Range<u64>) -> RunFigures {
        let (job_count, tombstone_count) =
            (jobs.end - jobs.start, tombstones.end - tombstones.start);
        RunFigures {
            bytes: job_count * 100 + tombstone_count * TOMBSTONE_BYTES,
            entries: job_count + tombstone_count,
            tombstones: tombstone_count,
            samples: Some(IdSamples {
                jobs: IdSample::of(jobs),
                tombstones: IdSample::of(tombstones),
            }),
            ..RunFigures::default()
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
        assert_eq!(mostly_cancelled(&runs[1..], terms(16, 10_000)), None);
        assert_eq!(mostly_cancelled(&runs, terms(16, 10_000)), None);
    }

    #[test]
    fn what_is_consumed_frees_nothing() {
        let jobs = cancelled(0..1_000, 0..0);
        let tombstones = cancelled(0..0, 0..1_000);
        assert_eq!(choose(&[jobs.clone(), tombstones.clone()], 16, 10_000), Some(0..2));
        let consumed = RunFigures { consumed: 990, ..tombstones.clone() };
        assert!(mostly_cancelled(&[jobs, consumed], terms(16, 10_000)).is_none());
    }

    #[test]
    fn all_runs_are_merged_if_all_is_cancelled() {
        let runs: Vec<RunFigures> = (0..8)
            .map(|no| cancelled(no * 1_000..no * 1_000 + 1_000, 0..0))
            .chain((0..8).map(|no| cancelled(0..0, no * 1_000..no * 1_000 + 1_000)))
            .collect();
        assert_eq!(choose(&runs, 32, 10_000), Some(0..16));
    }

    #[test]
    fn a_merge_without_room_does_not_block_a_smaller_one() {
        let fit = |runs: &[RunFigures], room_bytes| {
            super::choose(runs, ChoiceTerms { room_bytes, ..terms(3, 100) })
        };
        // Six large ones would be first, but only the three small ones have room.
        let mut runs = vec![run(500, 0); 6];
        runs.extend(vec![run(100, 0); 3]);
        assert_eq!(fit(&runs, u64::MAX), Some(0..6));
        assert_eq!(fit(&runs, 300), Some(6..9));
        assert_eq!(fit(&runs, 299), None);
        // A window that fits begins further on.
        let runs = [run(200, 0), run(200, 0), run(100, 0), run(100, 0), run(100, 0)];
        assert_eq!(fit(&runs, 300), Some(2..5));
        // What is consumed needs no room.
        assert_eq!(fit(&[run(9_000, 0), run(8_000, 90)], 1_600), Some(1..2));
        // Cancelled jobs: the pair that frees most does not fit, another does.
        let jobs = |ids: Range<u64>| cancelled(ids, 0..0);
        let runs = [
            jobs(0..10_000),
            cancelled(0..0, 0..9_000),
            jobs(20_000..20_500),
            cancelled(0..0, 20_000..20_400),
        ];
        assert_eq!(fit(&runs[..2], 1_000_000), None);
        assert_eq!(fit(&runs, 100_000), Some(2..4));
        // Too many runs: two become one if there is no room for three.
        let runs = vec![run(9_000, 0); 65];
        let tiers = ChoiceTerms { room_bytes: 20_000, ..terms(3, 1 << 40) };
        assert_eq!(lightest(&runs, tiers), Some(0..2));
    }

    #[test]
    fn a_run_that_is_gone_soon_is_not_rewritten() {
        let soon = RunFigures { is_gone_soon: true, ..run(1_000, 90) };
        assert_eq!(choose(std::slice::from_ref(&soon), 16, 100), None);
        assert_eq!(choose(&[soon, run(1_000, 90)], 16, 100), Some(1..2));
        // Nor is one for little: such runs are rewritten together.
        assert_eq!(choose(&[run(10, 90)], 16, 100), None);
        assert_eq!(choose(&[run(10, 90), run(10, 95)], 16, 100), Some(0..2));
        assert_eq!(choose(&[run(10, 90), run(10, 20), run(10, 95)], 16, 100), None);
    }

    #[test]
    fn purged_jobs_are_weighed() {
        let purged = |bytes, consumed, purged| RunFigures { purged, ..run(bytes, consumed) };
        assert_eq!(choose(&[run(1_000, 0), purged(1_000, 0, 40)], 16, 100), Some(1..2));
        assert_eq!(choose(&[purged(1_000, 0, 100)], 16, 100), Some(0..1));
        // A small part of a run is not worth it, nor are a few bytes.
        assert_eq!(choose(&[purged(1_000, 0, 20)], 16, 100), None);
        assert_eq!(choose(&[purged(10, 0, 40)], 16, 100), None);
        // What was consumed before the purge is not freed by it.
        assert_eq!(choose(&[purged(1_000, 85, 10)], 16, 1_600), None);
    }
}
