//! A rate, and how far it has been used: the generic cell rate algorithm, in whole numbers.
//!
//! With the interval `T = per / jobs`, a job may be taken if `now >= floor(tat - (burst - 1) T)`;
//! then `tat = max(tat, now) + T`. The clock shows whole ms, so the instant is rounded down: else a
//! rate would lose a part of a ms with each job. Over any `w` ms of the clock, both ends included,
//! fewer than `w / T + burst` jobs are taken, rounded up.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::limits::{RATE_BURST_MAX, RATE_JOBS_PER_MS_MAX, RATE_PER_MS_MAX};

/// So many jobs in so much time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many jobs.
    pub jobs: u64,
    /// In how much time.
    pub per_ms: u64,
    /// How many may come at once after a rest.
    pub burst: u64,
}

/// Spans that a rate is written with.
const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl Rate {
    /// So many jobs in so much time, one at once.
    pub fn new(jobs: u64, per_ms: u64) -> Rate {
        Rate { jobs, per_ms, burst: 1 }
    }

    /// Checks all limits; `field` is the setting.
    pub fn check(&self, field: &str) -> Result<(), Error> {
        let &Rate { jobs, per_ms, burst } = self;
        let refuse = |what: String| Err(Error::invalid(format!("{field} {what}")));
        if !(1..=RATE_PER_MS_MAX).contains(&per_ms) {
            return refuse(format!(
                "counts per {per_ms} ms; give 1 to {RATE_PER_MS_MAX} ms, a day"
            ));
        }
        let jobs_max = per_ms.saturating_mul(RATE_JOBS_PER_MS_MAX);
        if !(1..=jobs_max).contains(&jobs) {
            return refuse(format!(
                "is {jobs} jobs per {per_ms} ms; give 1 to {jobs_max}, a million per second"
            ));
        }
        if !(1..=RATE_BURST_MAX).contains(&burst) {
            return refuse(format!("has a burst of {burst} jobs; give 1 to {RATE_BURST_MAX}"));
        }
        Ok(())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, unit_ms): &&(&str, u64)| self.per_ms.is_multiple_of(*unit_ms);
        let (unit, unit_ms) = UNITS.iter().rev().find(fits).unwrap_or(&UNITS[0]);
        write!(f, "{}/{}{unit}", self.jobs, self.per_ms / unit_ms)
    }
}

impl FromStr for Rate {
    type Err = Error;

    /// Reads `100/1m`; the number before the unit is 1 unless given. Limits are not checked.
    fn from_str(text: &str) -> Result<Rate, Error> {
        let parsed = text.split_once('/').and_then(|(jobs, per)| {
            let digits = per.bytes().take_while(u8::is_ascii_digit).count();
            let (count, unit) = per.split_at(digits);
            let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit)?;
            let count: u64 = if count.is_empty() { 1 } else { count.parse().ok()? };
            let is_number = jobs.bytes().all(|byte| byte.is_ascii_digit());
            let jobs = jobs.parse().ok().filter(|_| is_number)?;
            Some(Rate::new(jobs, count.checked_mul(*unit_ms)?))
        });
        parsed.ok_or_else(|| {
            let shown: String = text.chars().take(64).collect();
            Error::invalid(format!(
                "rate {shown:?} is not of the form <jobs>/<span>; write 100/1m, with one of the \
                 units ms, s, m, h, d"
            ))
        })
    }
}

/// How far a rate has been used: the instant at which the next job would come if all came evenly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Whole ms, steady.
    tat_ms: u64,
    /// And so many parts of a ms, of which `jobs` make one.
    tat_parts: u64,
}

impl Pace {
    /// The pace of which nobody knows what was taken before: as if all had been, to the end of
    /// this ms.
    pub(crate) fn empty(rate: Rate, now_ms: u64) -> Pace {
        let parts = u128::from(now_ms.saturating_add(1)) * u128::from(rate.jobs);
        Pace::from_parts(rate, parts + rate.burst_parts())
    }

    /// The rate is another from now on: parts would mean something else.
    pub(crate) fn rounded_up(self) -> Pace {
        Pace { tat_ms: self.tat_ms.saturating_add(self.tat_parts.min(1)), tat_parts: 0 }
    }

    fn parts(self, rate: Rate) -> u128 {
        u128::from(self.tat_ms) * u128::from(rate.jobs) + u128::from(self.tat_parts)
    }

    fn from_parts(rate: Rate, parts: u128) -> Pace {
        let jobs = u128::from(rate.jobs.max(1));
        let tat_ms = u64::try_from(parts / jobs).unwrap_or(u64::MAX);
        // A remainder is less than the divisor.
        Pace { tat_ms, tat_parts: (parts % jobs) as u64 }
    }

    /// As it counts now: no rate makes anybody wait longer than a whole burst takes.
    fn counted(self, rate: Rate, now_ms: u64) -> u128 {
        self.parts(rate).min(Pace::empty(rate, now_ms).parts(rate))
    }

    /// The first instant from now on at which a job may be taken, steady ms.
    pub(crate) fn open_at(self, rate: Rate, now_ms: u64) -> u64 {
        let waits = u128::from(rate.burst.saturating_sub(1)) * u128::from(rate.per_ms);
        let open = self.counted(rate, now_ms).saturating_sub(waits);
        let open_ms = open / u128::from(rate.jobs.max(1));
        u64::try_from(open_ms).unwrap_or(u64::MAX).max(now_ms)
    }

    /// A job is taken now.
    pub(crate) fn take(&mut self, rate: Rate, now_ms: u64) {
        let now = u128::from(now_ms) * u128::from(rate.jobs);
        let used = self.counted(rate, now_ms).max(now) + u128::from(rate.per_ms);
        *self = Pace::from_parts(rate, used);
    }

    /// From when on nothing is to be remembered, steady ms.
    pub(crate) fn forgotten_at(self) -> u64 {
        self.rounded_up().tat_ms
    }
}

impl Rate {
    /// The time that a whole burst takes, in parts of a ms.
    fn burst_parts(self) -> u128 {
        u128::from(self.burst) * u128::from(self.per_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(u64, u64)>) {
        let rate = text.parse::<Rate>();
        let valid = rate.clone().ok().filter(|rate| rate.check("rate").is_ok());
        assert_eq!(valid.map(|rate| (rate.jobs, rate.per_ms)), expected, "{text}: {rate:?}");
        if let Some(rate) = valid {
            assert_eq!(rate.to_string().parse::<Rate>(), Ok(rate));
        }
    }

    #[test]
    fn a_rate_is_read_as_people_write_it() {
        check("100/1m", Some((100, 60_000)));
        check("5/s", Some((5, 1_000)));
        check("1/d", Some((1, 86_400_000)));
        check("1000000/1s", Some((1_000_000, 1_000)));
        check("7/90s", Some((7, 90_000)));
        let bad = "100 100/ /1m 100/0s 0/1s -1/1s +1/1s 1/2d 1/1w 1.5/s 1000001/s 1/s/s 1/-1s";
        bad.split(' ')
            .chain(["", "1 /s", "99999999999999999999/s", "1/99999999999999999999d"])
            .for_each(|text| check(text, None));
        assert!(Rate { burst: 0, ..Rate::new(1, 1) }.check("rate").is_err());
        assert!(Rate { burst: 1_000_001, ..Rate::new(1, 1) }.check("rate").is_err());
    }

    /// Takes whenever it may, at the instants given.
    fn taken(rate: Rate, mut pace: Pace, instants: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut taken = Vec::new();
        for now_ms in instants {
            for _ in 0..1_000 {
                if pace.open_at(rate, now_ms) > now_ms {
                    break;
                }
                pace.take(rate, now_ms);
                taken.push(now_ms);
            }
        }
        taken
    }

    #[test]
    fn no_window_has_more_than_its_rate_and_a_burst_and_none_is_lost() {
        for (jobs, per_ms, burst) in [(1, 10, 1), (3, 10, 1), (7, 3, 5), (1_000, 7, 20), (2, 9, 4)]
        {
            let rate = Rate { jobs, per_ms, burst };
            let taken = taken(rate, Pace::default(), 1_000..1_060);
            for (first, from) in taken.iter().enumerate() {
                for (last, to) in taken.iter().enumerate().skip(first) {
                    let allowed = ((to - from + 1) * jobs - 1) / per_ms + burst;
                    assert!((last - first + 1) as u64 <= allowed, "{rate:?}: {from} to {to}");
                }
            }
            // The first ms finds a full bucket.
            assert_eq!(taken.len() as u64, (60 * jobs - 1) / per_ms + burst, "{rate:?}");
        }
    }

    #[test]
    fn after_a_start_it_is_as_if_all_had_been_taken() {
        let rate = Rate { jobs: 1, per_ms: 10, burst: 3 };
        let taken = taken(rate, Pace::empty(rate, 100), 100..160);
        assert_eq!(taken, [111, 121, 131, 141, 151]);
    }

    #[test]
    fn a_faster_rate_holds_at_once() {
        let mut pace = Pace::default();
        pace.take(Rate::new(1, 86_400_000), 100);
        let fast = Rate::new(1, 10);
        assert_eq!(pace.rounded_up().open_at(fast, 100), 111);
    }
}
