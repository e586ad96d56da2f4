//! How long a job waits after a failed attempt.

use core::time::Duration;

use crate::job::JobId;
use crate::limits::JITTER_PERMILLE_MAX;

/// The jitter of growing delays for which none was given.
const EXPONENTIAL_JITTER_PERMILLE: u16 = 500;

/// Delays after failed attempts, and how much of them chance may take away.
///
/// ```
/// use std::time::Duration;
///
/// use dormouse_core::backoff::Backoff;
///
/// let exact = Backoff::fixed(Duration::from_secs(10));
/// let spread = Backoff::fixed(Duration::from_secs(10)).with_jitter(0.2); // 8 to 10 s
/// let growing =
///     Backoff::exponential(Duration::from_secs(1), 2, Duration::from_secs(600)); // jitter 0.5
/// # let _ = (exact, spread, growing);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The delays in full.
    pub delays: Delays,
    /// The part of a delay, in thousandths, that a hash of id and attempt may take away: every
    /// backend and every replay computes the same instant.
    pub jitter_permille: u16,
}

/// The full delays of a [`Backoff`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delays {
    /// Always the same.
    Fixed {
        /// The delay.
        delay_ms: u64,
    },
    /// `base_ms * factor^(attempt - 1)`, at most `cap_ms`.
    Exponential {
        /// The first delay.
        base_ms: u64,
        /// Growth per attempt.
        factor: u32,
        /// The longest delay.
        cap_ms: u64,
    },
    /// One per attempt; the last one repeats.
    List {
        /// The delays, at least one.
        delays_ms: Vec<u64>,
    },
}

impl From<Delays> for Backoff {
    fn from(delays: Delays) -> Backoff {
        let jitter_permille = delays.default_jitter_permille();
        Backoff { delays, jitter_permille }
    }
}

impl Backoff {
    /// 1 s, doubling, at most 10 minutes.
    pub const DEFAULT: Backoff = Backoff {
        delays: Delays::Exponential { base_ms: 1_000, factor: 2, cap_ms: 600_000 },
        jitter_permille: EXPONENTIAL_JITTER_PERMILLE,
    };

    /// Always this delay, exactly.
    pub fn fixed(delay: Duration) -> Backoff {
        Delays::Fixed { delay_ms: to_ms(delay) }.into()
    }

    /// `base`, times `factor` after each attempt, at most `cap`; with a jitter of 0.5.
    pub fn exponential(base: Duration, factor: u32, cap: Duration) -> Backoff {
        Delays::Exponential { base_ms: to_ms(base), factor, cap_ms: to_ms(cap) }.into()
    }

    /// One delay per attempt, exactly; the last one repeats.
    pub fn list(delays: impl IntoIterator<Item = Duration>) -> Backoff {
        Delays::List { delays_ms: delays.into_iter().map(to_ms).collect() }.into()
    }

    /// The part of each delay that chance may take away, 0 to 1, kept in thousandths: with 0.2 a
    /// delay of 10 s becomes 8 to 10 s. What is out of range is refused when the job is put.
    #[must_use]
    pub fn with_jitter(self, jitter: f64) -> Backoff {
        let permille = (jitter * f64::from(JITTER_PERMILLE_MAX)).round();
        let fits = (0.0..=f64::from(JITTER_PERMILLE_MAX)).contains(&permille);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it fits")]
        let jitter_permille = if fits { permille as u16 } else { u16::MAX };
        Backoff { jitter_permille, ..self }
    }

    /// The jitter as [`Backoff::with_jitter`] takes it.
    pub fn jitter(&self) -> f64 {
        f64::from(self.jitter_permille) / f64::from(JITTER_PERMILLE_MAX)
    }

    /// The delay after this attempt (the first is 1) of this job.
    pub fn delay_ms(&self, id: JobId, attempt: u32) -> u64 {
        let full_ms = self.delays.full_ms(attempt);
        let max = u128::from(JITTER_PERMILLE_MAX);
        let jitter = u128::from(self.jitter_permille).min(max);
        // 16 bits of hash over 2^16 give [0, 1); what it leaves is rounded up.
        let hash = u128::from(mix(id.0 ^ (u64::from(attempt) << 48)) >> 48);
        let left = ((max - jitter) << 16) + jitter * hash;
        let ms = (u128::from(full_ms) * left).div_ceil(max << 16);
        u64::try_from(ms).unwrap_or(full_ms)
    }
}

impl Delays {
    /// The jitter unless one is given: what is written down delay by delay is what happens, and
    /// growing delays keep jobs that failed together apart.
    pub fn default_jitter_permille(&self) -> u16 {
        match self {
            Delays::Fixed { .. } | Delays::List { .. } => 0,
            Delays::Exponential { .. } => EXPONENTIAL_JITTER_PERMILLE,
        }
    }

    fn full_ms(&self, attempt: u32) -> u64 {
        let steps = attempt.saturating_sub(1);
        match self {
            Delays::Fixed { delay_ms } => *delay_ms,
            Delays::Exponential { base_ms, factor, cap_ms } => {
                let growth = u64::from(*factor).checked_pow(steps);
                growth
                    .and_then(|growth| base_ms.checked_mul(growth))
                    .unwrap_or(*cap_ms)
                    .min(*cap_ms)
            }
            Delays::List { delays_ms } => {
                let index = (steps as usize).min(delays_ms.len().max(1) - 1);
                delays_ms.get(index).copied().unwrap_or(0)
            }
        }
    }
}

/// Rounded up to a whole ms, as due times are.
fn to_ms(delay: Duration) -> u64 {
    u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// The finaliser of SplitMix64: every input bit reaches every output bit.
pub(crate) fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least and the greatest delay of many jobs after this attempt.
    fn range_ms(backoff: &Backoff, attempt: u32) -> (u64, u64) {
        let delays = (1..=2_000).map(|id| backoff.delay_ms(JobId(id), attempt));
        (delays.clone().min().unwrap_or(0), delays.max().unwrap_or(0))
    }

    #[test]
    fn what_is_written_down_is_what_happens() {
        let fixed = Backoff::fixed(Duration::from_secs(10));
        let list = Backoff::list([1, 5, 30].map(|minutes| Duration::from_secs(minutes * 60)));
        for attempt in 1..5 {
            assert_eq!(range_ms(&fixed, attempt), (10_000, 10_000));
        }
        assert_eq!(range_ms(&list, 1), (60_000, 60_000));
        assert_eq!(range_ms(&list, 2), (300_000, 300_000));
        assert_eq!(range_ms(&list, 9), (1_800_000, 1_800_000));
    }

    #[test]
    fn jitter_takes_away_its_part_and_no_more() {
        let fixed = Backoff::fixed(Duration::from_secs(10));
        for (jitter, least_ms) in [(0.0, 10_000), (0.2, 8_000), (0.5, 5_000), (1.0, 0)] {
            let (least, greatest) = range_ms(&fixed.clone().with_jitter(jitter), 1);
            assert!((least_ms..=least_ms + 50).contains(&least), "{jitter}: {least}");
            assert!((9_950..=10_000).contains(&greatest), "{jitter}: {greatest}");
        }
        let growing = Backoff::exponential(Duration::from_secs(1), 2, Duration::from_secs(600));
        assert_eq!(growing, Backoff::DEFAULT);
        let (least, greatest) = range_ms(&growing, 2);
        assert!((1_000..=1_010).contains(&least) && (1_990..=2_000).contains(&greatest));
        assert_eq!(range_ms(&growing.with_jitter(0.0), 2), (2_000, 2_000));
    }

    #[test]
    fn jitter_is_kept_in_thousandths() {
        let fixed = || Backoff::fixed(Duration::from_micros(1));
        assert_eq!(fixed().delays, Delays::Fixed { delay_ms: 1 });
        for (given, kept) in [(0.2, 200), (1.0 / 3.0, 333), (1.0, 1_000), (1.000_1, 1_000)] {
            assert_eq!(fixed().with_jitter(given).jitter_permille, kept);
        }
        for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(fixed().with_jitter(wrong).jitter_permille, u16::MAX);
        }
    }
}
