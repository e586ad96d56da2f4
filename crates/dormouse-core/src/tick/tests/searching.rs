//! Searching ends soon, and next, previous and count agree.

use super::{cron, local, locals, ms};

#[test]
fn the_sparsest_rule_is_found() {
    // The fifth Monday of February: 29 February on a Monday.
    let fifth = cron("0 0 * 2 1#5", "Europe/Berlin");
    let ticks = locals(&fifth, "2027-01-01T00:00:00Z", "2200-01-01T00:00:00Z");
    let expected = [
        "2044-02-29T00:00+01",
        "2072-02-29T00:00+01",
        "2112-02-29T00:00+01",
        "2140-02-29T00:00+01",
        "2168-02-29T00:00+01",
        "2196-02-29T00:00+01",
    ];
    assert_eq!(ticks, expected);
    assert_eq!(fifth.count(ms("2027-01-01T00:00:00Z"), ms("2200-01-01T00:00:00Z")), 6);
    let before_ms = fifth.previous(ms("2112-02-28T00:00:00Z")).unwrap();
    assert_eq!(local(&fifth, before_ms), "2072-02-29T00:00+01");
}

#[test]
fn a_year_of_ticks_is_counted() {
    let count = |text: &str| {
        let cron = cron(text, "America/New_York");
        cron.count(ms("2027-01-01T04:59:59.999Z"), ms("2028-01-01T04:59:59.999Z"))
    };
    assert_eq!(count("0 3 * * *"), 365);
    assert_eq!(count("30 2 * * *"), 365);
    assert_eq!(count("30 1 * * *"), 365);
    assert_eq!(count("0 * * * *"), 365 * 24);
    assert_eq!(count("*/5 * * * *"), 365 * 24 * 12);
    assert_eq!(count("* * * * * *"), 365 * 86_400);
    // Each minute of the hour that is left out once, and of the one that comes twice.
    assert_eq!(count("* 2 * * *"), 364 * 60);
    assert_eq!(count("* 1 * * *"), 366 * 60);
    assert_eq!(count("0 0 29 2 *"), 0);
}

#[test]
fn the_ends_of_the_calendar_are_no_trouble() {
    let daily = cron("0 0 * * *", "America/New_York");
    assert_eq!(daily.previous(0), None);
    assert_eq!(daily.previous(ms("1970-01-01T05:00:00Z")), Some(ms("1970-01-01T05:00:00Z")));
    assert_eq!(daily.next(0), Some(ms("1970-01-01T05:00:00Z")));
    for at_ms in [33_000_000_000_000, 253_402_207_200_000, u64::MAX / 2, u64::MAX] {
        let _ = (daily.next(at_ms), daily.previous(at_ms), daily.notes(at_ms));
        assert!(daily.count(at_ms, at_ms) == 0);
    }
    assert_eq!(daily.count(10, 5), 0);
}

#[test]
fn a_part_of_a_second_does_not_matter() {
    let daily = cron("0 0 * * *", "UTC");
    let midnight_ms = ms("2027-01-02T00:00:00Z");
    let check = |at_ms, previous, next| {
        assert_eq!((daily.previous(at_ms), daily.next(at_ms)), (Some(previous), Some(next)));
    };
    let day_ms = 86_400_000;
    check(midnight_ms - 1, midnight_ms - day_ms, midnight_ms);
    check(midnight_ms, midnight_ms, midnight_ms + day_ms);
    check(midnight_ms + 1, midnight_ms, midnight_ms + day_ms);
}
