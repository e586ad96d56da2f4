//! Memory and disk of the server over time: whether they stay flat.

use std::path::Path;
use std::time::{Duration, Instant};

use super::super::server::Process;
use crate::{Result, rss};

const MINUTE: Duration = Duration::from_secs(60);

/// One look at the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// Since the first put.
    pub(super) at: Duration,
    pub(super) rss_bytes: u64,
    pub(super) disk_bytes: u64,
}

#[derive(Default)]
pub(super) struct Samples(Vec<Sample>);

impl Samples {
    pub(super) fn take(
        &mut self,
        began: Instant,
        process: &Process,
        data: &Path,
    ) -> Result<Sample> {
        let (disk_bytes, _) = rss::disk_use(data)?;
        let rss_bytes = process.memory_bytes()?;
        let sample = Sample { at: began.elapsed(), rss_bytes, disk_bytes };
        self.0.push(sample);
        Ok(sample)
    }

    pub(super) fn most(&self, figure: fn(&Sample) -> u64) -> u64 {
        self.0.iter().map(figure).max().unwrap_or(0)
    }

    /// The most of the last minute before `end` to the most of the second minute; nothing if the
    /// two overlap.
    pub(super) fn growth(&self, end: Duration, figure: fn(&Sample) -> u64) -> Option<f64> {
        let last = end.checked_sub(MINUTE).filter(|&from| from >= 2 * MINUTE)?;
        let most = |from: Duration, to: Duration| {
            self.0.iter().filter(|sample| (from..to).contains(&sample.at)).map(figure).max()
        };
        Some(most(last, end)? as f64 / most(MINUTE, 2 * MINUTE)?.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_from_the_second_to_the_last_minute() {
        let sample = |second: u64| Sample {
            at: Duration::from_secs(second),
            rss_bytes: 100 + second,
            disk_bytes: 0,
        };
        let samples = Samples((0..240).map(sample).collect());
        let growth = |end| samples.growth(Duration::from_secs(end), |sample| sample.rss_bytes);
        assert_eq!(growth(179), None);
        assert_eq!(growth(180), Some(279.0 / 219.0));
        assert_eq!(growth(240), Some(339.0 / 219.0));
    }
}
