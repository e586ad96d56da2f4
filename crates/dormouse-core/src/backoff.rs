//! How long a job waits after a failed attempt.

use crate::job::JobId;

/// The wait grows by this rule; a jitter of [0.5, 1] is a hash of id and attempt, so every backend
/// and every replay computes the same instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Always the same wait.
    Fixed {
        /// The wait.
        delay_ms: u64,
    },
    /// `base_ms * factor^(attempt - 1)`, at most `cap_ms`.
    Exponential {
        /// The first wait.
        base_ms: u64,
        /// Growth per attempt.
        factor: u32,
        /// The longest wait.
        cap_ms: u64,
    },
    /// One wait per attempt; the last one repeats.
    List {
        /// The waits, at least one.
        delays_ms: Vec<u64>,
    },
}

impl Backoff {
    /// 1 s, doubling, at most 10 minutes.
    pub const DEFAULT: Backoff =
        Backoff::Exponential { base_ms: 1_000, factor: 2, cap_ms: 600_000 };

    /// The wait after this attempt (the first is 1) of this job.
    pub fn delay_ms(&self, id: JobId, attempt: u32) -> u64 {
        let full_ms = match self {
            Backoff::Fixed { delay_ms } => *delay_ms,
            Backoff::Exponential { base_ms, factor, cap_ms } => {
                let growth = u64::from(*factor).checked_pow(attempt.saturating_sub(1));
                growth
                    .and_then(|growth| base_ms.checked_mul(growth))
                    .unwrap_or(*cap_ms)
                    .min(*cap_ms)
            }
            Backoff::List { delays_ms } => {
                let index = (attempt.saturating_sub(1) as usize).min(delays_ms.len().max(1) - 1);
                delays_ms.get(index).copied().unwrap_or(0)
            }
        };
        // 53 bits of hash over 2^53 give [0, 1); the wait is [0.5, 1) of the full one, rounded up.
        let share = u128::from(mix(id.0 ^ (u64::from(attempt) << 48)) >> 11);
        let half = u128::from(full_ms) * ((1 << 53) + share);
        u64::try_from(half.div_ceil(1 << 54)).unwrap_or(full_ms)
    }
}

/// The finaliser of SplitMix64: every input bit reaches every output bit.
pub(crate) fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
