//! The same expressions for croner, another crate: where the answers differ, that is decided.

use chrono::{DateTime, Utc};
use croner::parser::{CronParser, Seconds};
use dormouse_check::generate::rng::Rng;
use dormouse_check::generate::seed::seed;
use dormouse_core::tick::Cron;
use jiff::tz::TimeZoneDatabase;

use super::naive::Naive;
use super::random_rule::expression;

fn theirs(text: &str) -> Option<croner::Cron> {
    CronParser::builder().seconds(Seconds::Optional).build().parse(text).ok()
}

/// Ours and theirs: the first ticks after 2027-01-01 in UTC.
fn ticks(text: &str) -> (Option<Vec<i64>>, Option<Vec<i64>>) {
    const FROM_MS: u64 = 1_798_761_600_000;
    let ours = Cron::new(text, "UTC", &TimeZoneDatabase::none()).ok().map(|cron| {
        let ticks = std::iter::successors(cron.next(FROM_MS), |&tick_ms| cron.next(tick_ms));
        ticks.take(20).map(|tick_ms| tick_ms as i64).collect()
    });
    let theirs = theirs(text).map(|cron| {
        let from: DateTime<Utc> = DateTime::from_timestamp_millis(FROM_MS as i64).unwrap();
        let next = |at: &DateTime<Utc>| cron.find_next_occurrence(at, false).ok();
        let ticks = std::iter::successors(next(&from), |at| next(at));
        ticks.take(20).map(|at| at.timestamp_millis()).collect()
    });
    (ours, theirs)
}

#[test]
fn random_rules_tick_as_croner_says() {
    let seed = seed();
    println!("DORMOUSE_SEED={seed}");
    let mut rng = Rng::new(seed);
    let (mut equal, mut left_out) = (0, 0);
    for _ in 0..300 {
        let text = expression(&mut rng);
        match ticks(&text) {
            _ if is_decided_otherwise(&text) => left_out += 1,
            (Some(ours), Some(theirs)) => {
                assert_eq!(ours, theirs, "{text:?}");
                equal += 1;
            }
            _ => left_out += 1,
        }
    }
    println!("{equal} equal, {left_out} left out");
    assert!(equal > 30, "{equal} equal, {left_out} left out");
}

/// Restricted is by value here, by the star there: `1-31` restricts nothing here.
fn is_decided_otherwise(text: &str) -> bool {
    let naive = Naive::new(text);
    let fields: Vec<&str> = text.split(' ').collect();
    let [.., days, _, weekdays] = fields.as_slice() else { return true };
    let is_star = |field: &str| ["*", "?"].contains(&field);
    // It does not take 7 for Sunday in front of `L` and `#`.
    if weekdays.contains("7L") || weekdays.contains("7#") {
        return true;
    }
    // Nor does it know `L` beside `LW`.
    let has = |item: &str| days.split(',').any(|day| day == item);
    if has("L") && has("LW") {
        return true;
    }
    naive.has_all_days() && !is_star(days) || naive.has_all_weekdays() && !is_star(weekdays)
}

#[test]
fn what_differs_is_decided() {
    let check = |text: &str, is_ours: bool, is_theirs: bool| {
        let (ours, theirs) = ticks(text);
        assert_eq!((ours.is_some(), theirs.is_some()), (is_ours, is_theirs), "{text:?}");
        assert!(!(is_ours && is_theirs) || ours != theirs, "{text:?} does not differ");
    };
    // All days are no restriction, however they are written.
    check("0 0 1-31 * 5", true, true);
    // 7 is Sunday everywhere.
    check("0 0 * * 7L", true, true);
    check("0 0 L,LW * *", true, true);
    // Mistakes that are not accepted.
    check("*/70 * * * *", false, true);
    check("1,,2 * * * *", false, true);
    check("0 0 30 2 *", false, true);
}
