//! Histograms of times: integers in any unit go in, seconds come out. They consist of atomics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The largest number of buckets, including the one without an upper bound.
const BUCKETS_MAX: usize = 16;

/// A histogram of times.
pub(super) struct Histogram {
    /// Upper ends, ascending, inclusive.
    bounds: &'static [u64],
    /// Units per second.
    per_second: f64,
    counts: [AtomicU64; BUCKETS_MAX],
    sum: AtomicU64,
}

/// A copy of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HistogramCounts {
    /// The upper end of each bucket in seconds, and the number of values in it.
    pub(super) buckets: Vec<(f64, u64)>,
    /// The number of all values.
    pub(super) count: u64,
    /// The sum in seconds.
    pub(super) sum: f64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [u64], per_second: u32) -> Histogram {
        debug_assert!(bounds.len() < BUCKETS_MAX);
        let counts = [const { AtomicU64::new(0) }; BUCKETS_MAX];
        Histogram { bounds, per_second: f64::from(per_second), counts, sum: AtomicU64::new(0) }
    }

    /// Counts these values, with one write to shared memory per bucket that they hit.
    pub(super) fn note(&self, values: impl Iterator<Item = u64>) {
        let mut hits = [0_u64; BUCKETS_MAX];
        let mut sum = 0_u64;
        for value in values {
            let bucket = self.bounds.partition_point(|&bound| bound < value);
            hits[bucket.min(BUCKETS_MAX - 1)] += 1;
            sum = sum.saturating_add(value);
        }
        for (count, hits) in self.counts.iter().zip(hits).filter(|(_, hits)| *hits > 0) {
            count.fetch_add(hits, Relaxed);
        }
        self.sum.fetch_add(sum, Relaxed);
    }

    /// The number of values in each bucket, and their sum, in the unit of the values.
    pub(super) fn raw(&self) -> (Vec<u64>, u64) {
        let counts = self.counts.iter().map(|count| count.load(Relaxed)).collect();
        (counts, self.sum.load(Relaxed))
    }

    pub(super) fn counts(&self) -> HistogramCounts {
        let ends = self.bounds.iter().map(|&bound| bound as f64 / self.per_second);
        let ends = ends.chain([f64::INFINITY]);
        let counts = self.counts.iter().map(|count| count.load(Relaxed));
        let buckets: Vec<(f64, u64)> = ends.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        HistogramCounts { buckets, count, sum: self.sum.load(Relaxed) as f64 / self.per_second }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_falls_into_the_first_bucket_that_holds_it() {
        let histogram = Histogram::new(&[1, 2, 1_000], 1_000);
        histogram.note([0, 1, 2, 3, 1_000, 1_001].into_iter());
        let buckets = vec![(0.001, 2), (0.002, 1), (1.0, 2), (f64::INFINITY, 1)];
        assert_eq!(histogram.counts(), HistogramCounts { buckets, count: 6, sum: 2.007 });
    }
}
