//! Times of many operations, and what share of them stays below.

use std::time::Duration;

/// Every single time is kept: the percentiles are exact.
#[derive(Default)]
pub(crate) struct Latencies {
    times_us: Vec<u64>,
}

impl Latencies {
    pub(crate) fn add(&mut self, time: Duration) {
        self.add_us(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn add_us(&mut self, time_us: u64) {
        self.times_us.push(time_us);
    }

    pub(crate) fn append(&mut self, mut other: Latencies) {
        self.times_us.append(&mut other.times_us);
    }

    pub(crate) fn len(&self) -> usize {
        self.times_us.len()
    }

    /// The time that `percent` of 100 operations do not exceed; 0 if there were none.
    pub(crate) fn percentile(&mut self, percent: usize) -> u64 {
        self.per_mille(10 * percent)
    }

    /// The same for a share of 1000 operations.
    pub(crate) fn per_mille(&mut self, per_mille: usize) -> u64 {
        self.times_us.sort_unstable();
        let rank = (self.times_us.len() * per_mille).div_ceil(1_000);
        self.times_us.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact() {
        let mut times = Latencies::default();
        assert_eq!(times.percentile(99), 0);
        (1..=200).rev().for_each(|us| times.add_us(us));
        assert_eq!(
            (times.percentile(50), times.percentile(99), times.percentile(100)),
            (100, 198, 200)
        );
    }
}
