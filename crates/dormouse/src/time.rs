//! Conversion between the standard library's times and milliseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A span, rounded up so that nothing happens early. A span that does not fit exceeds every limit
/// anyway.
pub(crate) fn span_ms(span: Duration) -> i64 {
    i64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// A wall-clock time, rounded up; negative before 1970.
pub(crate) fn wall_ms(at: SystemTime) -> i64 {
    match at.duration_since(UNIX_EPOCH) {
        Ok(since) => span_ms(since),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    }
}

/// The instant that a reply names in ms since the epoch.
pub(crate) fn instant(at_ms: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(at_ms)).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_instants_round_up() {
        assert_eq!(span_ms(Duration::from_nanos(1)), 1);
        assert_eq!(span_ms(Duration::from_millis(5)), 5);
        assert_eq!(span_ms(Duration::MAX), i64::MAX);
        assert_eq!(wall_ms(UNIX_EPOCH + Duration::from_micros(1_001)), 2);
        assert_eq!(wall_ms(UNIX_EPOCH - Duration::from_micros(1_001)), -1);
        assert_eq!(wall_ms(instant(1_767_225_600_000)), 1_767_225_600_000);
    }
}
