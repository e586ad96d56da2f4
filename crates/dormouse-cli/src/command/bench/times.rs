//! Times of many operations and their percentiles.

use std::time::Duration;

/// Every single time is kept, in microseconds: the percentiles are exact.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    all_us: Vec<u64>,
}

impl Times {
    pub(super) fn add(&mut self, time: Duration) {
        self.add_us(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    pub(super) fn add_us(&mut self, time_us: u64) {
        self.all_us.push(time_us);
    }

    /// Half of them, nearly all, all; none if nothing was timed.
    pub(super) fn spread(&mut self) -> Option<Spread> {
        self.all_us.sort_unstable();
        let last = self.all_us.len().checked_sub(1)?;
        let percentile = |percent: usize| {
            let rank = (self.all_us.len() * percent).div_ceil(100);
            self.all_us[rank.saturating_sub(1).min(last)]
        };
        let (p50_us, p99_us, max_us) = (percentile(50), percentile(99), percentile(100));
        Some(Spread { p50_us, p99_us, max_us })
    }
}

/// The times that 50, 99 and 100 of 100 operations do not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spread {
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    pub(super) max_us: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(times_us: impl IntoIterator<Item = u64>, expected: Option<(u64, u64, u64)>) {
        let mut times = Times::default();
        times_us.into_iter().for_each(|time_us| times.add_us(time_us));
        let spread = times.spread();
        assert_eq!(spread.map(|all| (all.p50_us, all.p99_us, all.max_us)), expected);
    }

    #[test]
    fn percentiles_are_exact() {
        check([], None);
        check([7], Some((7, 7, 7)));
        check([9, 1], Some((1, 9, 9)));
        check((1..=200).rev(), Some((100, 198, 200)));
    }
}
