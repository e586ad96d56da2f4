//! Ticks at equal distances.

/// Ticks at `anchor_ms`, one span later, and so on: no drift, whatever is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    /// The instant that the ticks are counted from.
    pub anchor_ms: u64,
    /// The span between two of them, at least 1.
    pub span_ms: u64,
}

impl Every {
    /// The first tick after an instant; `None` at the end of time.
    pub fn next(&self, after_ms: u64) -> Option<u64> {
        match after_ms.checked_sub(self.anchor_ms) {
            None => Some(self.anchor_ms),
            Some(passed_ms) => {
                let spans = passed_ms / self.span_ms + 1;
                self.anchor_ms.checked_add(spans.checked_mul(self.span_ms)?)
            }
        }
    }

    /// The last tick up to an instant, that included.
    pub fn previous(&self, at_ms: u64) -> Option<u64> {
        let passed_ms = at_ms.checked_sub(self.anchor_ms)?;
        Some(at_ms - passed_ms % self.span_ms)
    }

    /// The number of ticks after `from_ms` and up to `to_ms`.
    pub fn count(&self, from_ms: u64, to_ms: u64) -> u64 {
        let until = |at_ms: u64| {
            at_ms.checked_sub(self.anchor_ms).map_or(0, |passed_ms| passed_ms / self.span_ms + 1)
        };
        until(to_ms).saturating_sub(until(from_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_counted_from_the_anchor() {
        let every = Every { anchor_ms: 1_000, span_ms: 300 };
        let check = |at_ms, previous, next| {
            assert_eq!((every.previous(at_ms), every.next(at_ms)), (previous, Some(next)));
        };
        check(0, None, 1_000);
        check(999, None, 1_000);
        check(1_000, Some(1_000), 1_300);
        check(1_299, Some(1_000), 1_300);
        check(1_300, Some(1_300), 1_600);
        assert_eq!(every.count(0, 999), 0);
        assert_eq!(every.count(0, 1_000), 1);
        assert_eq!(every.count(1_000, 1_900), 3);
        assert_eq!(every.count(1_900, 1_000), 0);
        assert_eq!(Every { anchor_ms: 1, span_ms: u64::MAX }.next(2), None);
    }

    #[test]
    fn a_hundred_years_do_not_drift() {
        let (anchor_ms, span_ms) = (1_794_787_200_123, 86_400_000);
        let every = Every { anchor_ms, span_ms };
        let mut at_ms = anchor_ms;
        for _ in 0..36_500 {
            at_ms = every.next(at_ms).unwrap();
        }
        assert_eq!(at_ms, anchor_ms + 36_500 * span_ms);
        assert_eq!(every.count(anchor_ms, at_ms), 36_500);
    }
}
