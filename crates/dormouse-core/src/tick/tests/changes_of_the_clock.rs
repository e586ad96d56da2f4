//! What becomes of ticks when clocks change: the decisions, each with its example.

use super::{cron, local, locals, ms};

/// The ticks in New York on the day that has no 02:00 to 03:00.
fn gap(text: &str, expected: &[&str]) {
    let ticks = locals(
        &cron(text, "America/New_York"),
        "2027-03-14T06:00:00Z", // 01:00-05
        "2027-03-14T08:00:00Z", // 04:00-04
    );
    assert_eq!(ticks, expected, "{text}");
}

/// The ticks in New York in the hours 01:00 to 02:00 that come twice, and around them.
fn overlap(text: &str, expected: &[&str]) {
    let ticks = locals(
        &cron(text, "America/New_York"),
        "2027-11-07T04:59:59Z", // 00:59:59-04
        "2027-11-07T07:00:01Z", // 02:00:01-05
    );
    assert_eq!(ticks, expected, "{text}");
}

#[test]
fn a_time_in_a_gap_comes_at_its_end() {
    gap("30 2 * * *", &["2027-03-14T03:00-04"]);
    gap("10,20 2 * * *", &["2027-03-14T03:00-04"]);
    gap("30 2,3 * * *", &["2027-03-14T03:00-04", "2027-03-14T03:30-04"]);
    gap("0 2,3 * * *", &["2027-03-14T03:00-04"]);
    gap("15 30 2 * * *", &["2027-03-14T03:00-04"]);
    gap("0 2 * * 1", &[]);
}

#[test]
fn a_beat_follows_real_time_over_a_gap() {
    gap("*/30 * * * *", &["2027-03-14T01:30-05", "2027-03-14T03:00-04", "2027-03-14T03:30-04"]);
    gap("0 * * * *", &["2027-03-14T03:00-04"]);
    gap("* 2 * * *", &[]);
}

#[test]
fn a_time_that_comes_twice_ticks_the_first_time() {
    overlap("30 1 * * *", &["2027-11-07T01:30-04"]);
    overlap("0,30 1 * * *", &["2027-11-07T01:00-04", "2027-11-07T01:30-04"]);
    overlap("0 1-2 * * *", &["2027-11-07T01:00-04", "2027-11-07T02:00-05"]);
    overlap("59 59 1 * * *", &["2027-11-07T01:59:59-04"]);
}

#[test]
fn a_beat_follows_real_time_over_an_overlap() {
    let hours = ["2027-11-07T01:00-04", "2027-11-07T01:00-05", "2027-11-07T02:00-05"];
    overlap("0 * * * *", &hours);
    overlap("7 0-23 * * *", &["2027-11-07T01:07-04", "2027-11-07T01:07-05"]);
    let half_hours = [
        "2027-11-07T01:00-04",
        "2027-11-07T01:30-04",
        "2027-11-07T01:00-05",
        "2027-11-07T01:30-05",
        "2027-11-07T02:00-05",
    ];
    overlap("*/30 * * * *", &half_hours);
}

/// A single tick after an instant.
fn check(zone: &str, text: &str, after: &str, expected: &str) {
    let cron = cron(text, zone);
    let tick_ms = cron.next(ms(after)).unwrap();
    assert_eq!(local(&cron, tick_ms), expected, "{zone} {text}");
    assert_eq!(cron.previous(tick_ms), Some(tick_ms), "{zone} {text}");
    assert_eq!(cron.count(ms(after), tick_ms), 1, "{zone} {text}");
}

#[test]
fn zones_with_changes_of_their_own() {
    // The gap begins at midnight.
    check("America/Santiago", "0 0 * * *", "2027-09-05T03:00:00Z", "2027-09-05T01:00-03");
    check("Africa/Cairo", "0 0 * * *", "2027-04-29T12:00:00Z", "2027-04-30T01:00+03");
    // Half an hour, and hours that are not whole.
    check("Australia/Lord_Howe", "15 2 * * *", "2027-10-02T14:00:00Z", "2027-10-03T02:30+11");
    check("Australia/Lord_Howe", "45 1 * * *", "2027-04-03T14:00:00Z", "2027-04-04T01:45+11");
    check("Pacific/Chatham", "0 3 * * *", "2027-09-25T12:00:00Z", "2027-09-26T03:45+13:45");
    // Two hours.
    check("Antarctica/Troll", "30 2 * * *", "2027-03-28T00:00:00Z", "2027-03-28T03:00+02");
    check("Antarctica/Troll", "30 1 * * *", "2027-03-28T00:00:00Z", "2027-03-28T03:00+02");
    // Around Ramadan.
    check("Africa/Casablanca", "30 2 * * *", "2027-02-06T12:00:00Z", "2027-02-07T02:30+00");
    // A day that does not exist has no ticks, and its neighbours have their own.
    check("Pacific/Apia", "0 12 * * *", "2011-12-30T00:00:00Z", "2011-12-31T12:00+14");
    check("Pacific/Apia", "0 0 30 12 *", "2011-12-01T00:00:00Z", "2012-12-30T00:00+14");
    // A fixed offset has no changes.
    check("+05:30", "30 2 * * *", "2027-03-13T21:00:00Z", "2027-03-15T02:30+05:30");
}

#[test]
fn zones_that_jiff_gets_wrong_in_other_ways() {
    // Not an overlap: the offset stayed -02.
    check("America/Nuuk", "30 23 * * *", "2023-10-28T23:30:00Z", "2023-10-28T23:30-02");
    check("America/Nuuk", "30 23 * * *", "2023-10-29T01:30:00Z", "2023-10-29T23:30-02");
    // A change of which jiff does not tell when it is asked for earlier ones.
    let metlakatla = cron("30 1 * * *", "America/Metlakatla");
    let before_ms = metlakatla.previous(ms("2019-01-20T10:28:00Z")).unwrap();
    assert_eq!(local(&metlakatla, before_ms), "2019-01-20T01:30-08");
}
