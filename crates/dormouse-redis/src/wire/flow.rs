//! The limits of a topic as scripts read them (`flow.lua`): each partition keeps its share.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::op::HeldBy;
use dormouse_core::rate::Rate;
use dormouse_core::topic::Settings;

use super::{Writer, codes, malformed};

/// A partition: its index, and how many its topic has.
pub(crate) type Position = (u64, u64);

/// The share of this partition of a number that all partitions have together.
pub(crate) fn share((index, of): Position, max: u64) -> u64 {
    max / of.max(1) + u64::from(index < max % of.max(1))
}

/// The limits of a topic in one of its partitions; empty = there are none.
pub(crate) fn encode(settings: &Settings, at: Position) -> Bytes {
    let Settings { rate, group_leased_max, group_rate, .. } = settings;
    let leased_max = settings.leased_limit();
    let has_slots = leased_max.is_some() || group_leased_max.is_some();
    if !has_slots && rate.is_none() && group_rate.is_none() {
        return Bytes::new();
    }
    let mut to = Writer::default();
    number(&mut to, leased_max.map_or(0, |max| share(at, max)));
    write_rate(&mut to, rate.map(|rate| share_of_rate(at, rate)));
    // All jobs of a group are in one partition.
    number(&mut to, group_leased_max.unwrap_or(0));
    write_rate(&mut to, *group_rate);
    to.take()
}

/// What other settings make of the limits, see lib.lua.
pub(crate) fn change(before: &Settings, after: &Settings) -> &'static str {
    let slots = |settings: &Settings| (settings.leased_limit(), settings.group_leased_max);
    match (before.rate, after.rate) {
        (Some(_), None) => "c",
        (before, after) if before != after => "r",
        _ if slots(before) != slots(after) || before.group_rate != after.group_rate => "k",
        _ => "",
    }
}

/// So many partitions with such a rate each have the whole rate, and no greater burst.
fn share_of_rate(at: Position, rate: Rate) -> Rate {
    Rate { per_ms: rate.per_ms * at.1, burst: share(at, rate.burst), ..rate }
}

/// Refuses limits that are smaller than the number of partitions: one would get no job.
pub(crate) fn check(settings: &Settings, partitions: u64) -> Result<(), Error> {
    let check = |what: &str, value: u64| check_share(what, value, partitions);
    settings.leased_max.map_or(Ok(()), |max| check("leased_max", max))?;
    settings.rate.map_or(Ok(()), |rate| check("the burst of rate", rate.burst))
}

/// Refuses a number of which a partition would have no share.
pub(crate) fn check_share(what: &str, value: u64, partitions: u64) -> Result<(), Error> {
    if value >= partitions {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{what} is {value}, but the topic has {partitions} partitions, and each keeps its share; \
         give at least {partitions}, or make the topic with --redis-partitions 1"
    )))
}

/// Numbers are exact in Lua up to 2^53.
fn number(to: &mut Writer, value: u64) {
    to.u64((value as f64).to_bits());
}

fn write_rate(to: &mut Writer, rate: Option<Rate>) {
    let Rate { jobs, per_ms, burst } = rate.unwrap_or(Rate { jobs: 0, per_ms: 0, burst: 0 });
    number(to, jobs);
    for times in [1, burst.saturating_sub(1), burst] {
        let span = u128::from(times) * u128::from(per_ms);
        let of = u128::from(jobs.max(1));
        for value in [span / of, span % of] {
            number(to, u64::try_from(value).unwrap_or(u64::MAX));
        }
    }
}

/// A limit by its code; `None` = 0.
pub(crate) fn held_by(code: u8) -> Result<Option<HeldBy>, Error> {
    Ok(match code {
        0 => None,
        codes::BY_LEASED_MAX => Some(HeldBy::LeasedMax),
        codes::BY_RATE => Some(HeldBy::Rate),
        codes::BY_GROUP_LEASED_MAX => Some(HeldBy::GroupLeasedMax),
        codes::BY_GROUP_RATE => Some(HeldBy::GroupRate),
        _ => return Err(malformed("unknown limit")),
    })
}

#[cfg(test)]
mod tests {
    use dormouse_core::limits::{RATE_BURST_MAX, RATE_PER_MS_MAX};

    use super::*;
    use crate::limits::PARTITIONS_MAX;

    fn settings(leased_max: Option<u64>, rate: Option<Rate>) -> Settings {
        Settings { leased_max, rate, ..Settings::default() }
    }

    fn numbers(text: &[u8]) -> Vec<f64> {
        text.chunks(8).map(|bytes| f64::from_be_bytes(bytes.try_into().unwrap())).collect()
    }

    #[test]
    fn all_shares_together_are_the_whole() {
        for (max, of) in [(10, 8), (8, 8), (257, 256), (5, 1)] {
            let sum: u64 = (0..of).map(|index| share((index, of), max)).sum();
            assert_eq!(sum, max);
        }
    }

    #[test]
    fn a_rate_is_three_spans_in_ms_and_parts() {
        let rate = Rate { jobs: 3, per_ms: 10, burst: 4 };
        let text = encode(&settings(Some(7), Some(rate)), (0, 1));
        assert_eq!(numbers(&text)[..8], [7.0, 3.0, 3.0, 1.0, 10.0, 0.0, 13.0, 1.0]);
        assert_eq!(numbers(&text)[8..], [0.0; 8]);
        // Half of the rate, half of the burst.
        let text = encode(&settings(Some(7), Some(rate)), (1, 2));
        assert_eq!(numbers(&text)[..8], [3.0, 3.0, 6.0, 2.0, 6.0, 2.0, 13.0, 1.0]);
        assert_eq!(encode(&settings(None, None), (0, 1)), Bytes::new());
    }

    #[test]
    fn limits_of_groups_are_not_shared() {
        let group_rate = Some(Rate { jobs: 3, per_ms: 10, burst: 1 });
        let settings = Settings { group_leased_max: Some(7), group_rate, ..Settings::default() };
        let text = encode(&settings, (1, 8));
        assert_eq!(numbers(&text)[8..], [7.0, 3.0, 3.0, 1.0, 0.0, 0.0, 3.0, 1.0]);
    }

    #[test]
    fn products_are_exact_in_lua() {
        let of = u64::from(PARTITIONS_MAX);
        let rate = Rate { jobs: 1, per_ms: RATE_PER_MS_MAX, burst: RATE_BURST_MAX };
        let share = share_of_rate((0, of), rate);
        assert!((share.burst + 1) * share.per_ms < 1 << 47, "{share:?}");
    }

    #[test]
    fn limits_below_the_partitions_are_refused_with_the_way_out() {
        let check = |leased_max, burst, partitions| {
            let rate = Rate { burst, ..Rate::new(1, 1_000) };
            super::check(&settings(Some(leased_max), Some(rate)), partitions)
        };
        assert_eq!(check(8, 8, 8), Ok(()));
        assert_eq!(check(1, 1, 1), Ok(()));
        for (refused, field) in [(check(7, 8, 8), "leased_max is 7"), (check(8, 1, 8), "burst")] {
            let error = refused.unwrap_err();
            assert!(error.text.contains(field), "{error}");
            assert!(error.text.contains("--redis-partitions 1"), "{error}");
        }
    }

    #[test]
    fn a_change_of_a_rate_is_told() {
        let rated = |jobs| settings(None, Some(Rate::new(jobs, 1_000)));
        let none = Settings::default();
        assert_eq!(change(&rated(1), &none), "c");
        assert_eq!(change(&rated(1), &rated(2)), "r");
        assert_eq!(change(&none, &settings(Some(1), None)), "k");
        let other = Settings { jobs_max: Some(1), ..rated(1) };
        assert_eq!(change(&rated(1), &other), "");
    }
}
