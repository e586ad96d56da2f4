//! The only place of the benchmark that reads clocks.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Linux counts a process's time in hundredths of a second, whatever the kernel's own tick is.
const TICKS_PER_S: f64 = 100.0;

pub(super) fn now() -> Instant {
    Instant::now()
}

/// The wall clock in microseconds since 1970. Lateness is this minus a job's due time, so the
/// server's clock has to be the same: the same machine.
pub(super) fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The processor time this process has used; `None` where the system does not report it.
pub(super) fn cpu_s() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    cpu_of(&stat)
}

/// User and system time are the 12th and 13th fields after the name, which is in parentheses
/// and may have blanks itself.
fn cpu_of(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) as f64 / TICKS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_found_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 1 0 5 6 7";
        assert_eq!(cpu_of(stat), Some(2.0));
        assert_eq!(cpu_of("7 (a) S 1"), None);
        assert_eq!(cpu_of(""), None);
    }
}
