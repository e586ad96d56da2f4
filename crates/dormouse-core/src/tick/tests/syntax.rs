//! Each form of each field, by the ticks it gives.

use super::{cron, ms};
use jiff::Timestamp;

/// The first ticks after 2027-01-01T00:00:00Z (a Friday), as `MM-DD hh:mm:ss` of 2027, or with the
/// year where it is another.
fn check(text: &str, expected: &[&str]) {
    let cron = cron(text, "UTC");
    let ticks = std::iter::successors(cron.next(ms("2027-01-01T00:00:00Z")), |&t| cron.next(t));
    let ticks: Vec<String> = ticks.take(expected.len()).map(short).collect();
    assert_eq!(ticks, expected, "{text}");
}

fn short(tick_ms: u64) -> String {
    let text = Timestamp::from_millisecond(tick_ms as i64).unwrap().to_string();
    let text = text.trim_end_matches('Z').replace('T', " ");
    text.strip_prefix("2027-").unwrap_or(&text).to_owned()
}

#[test]
fn minutes_and_hours() {
    check("* * * * *", &["01-01 00:01:00", "01-01 00:02:00"]);
    check("30 * * * *", &["01-01 00:30:00", "01-01 01:30:00"]);
    check("*/20 * * * *", &["01-01 00:20:00", "01-01 00:40:00", "01-01 01:00:00"]);
    check("10-50/20 3 * * *", &["01-01 03:10:00", "01-01 03:30:00", "01-01 03:50:00"]);
    check("5,1,3 4 * * *", &["01-01 04:01:00", "01-01 04:03:00", "01-01 04:05:00"]);
    check(
        "0 9-11 * * *",
        &["01-01 09:00:00", "01-01 10:00:00", "01-01 11:00:00", "01-02 09:00:00"],
    );
    check("0 0-23/12 * * *", &["01-01 12:00:00", "01-02 00:00:00"]);
    check("59 23 * * *", &["01-01 23:59:00", "01-02 23:59:00"]);
    check("  0   3 * * *  ", &["01-01 03:00:00"]);
}

#[test]
fn six_fields_put_seconds_first() {
    check("30 0 3 * * *", &["01-01 03:00:30", "01-02 03:00:30"]);
    check("*/30 * * * * *", &["01-01 00:00:30", "01-01 00:01:00"]);
    check("* * * * * *", &["01-01 00:00:01", "01-01 00:00:02"]);
    check("59 59 23 31 12 *", &["12-31 23:59:59", "2028-12-31 23:59:59"]);
}

#[test]
fn days_of_the_month() {
    check("0 0 15 * *", &["01-15 00:00:00", "02-15 00:00:00"]);
    check("0 0 31 * *", &["01-31 00:00:00", "03-31 00:00:00", "05-31 00:00:00"]);
    check("0 0 29 2 *", &["2028-02-29 00:00:00", "2032-02-29 00:00:00"]);
    check("0 0 L * *", &["01-31 00:00:00", "02-28 00:00:00", "03-31 00:00:00"]);
    check("0 0 l 2 *", &["02-28 00:00:00", "2028-02-29 00:00:00"]);
    check("0 0 1,L * *", &["01-31 00:00:00", "02-01 00:00:00", "02-28 00:00:00"]);
    // 31 January 2027 is a Sunday, 28 February as well, 31 March is a Wednesday.
    check("0 0 LW * *", &["01-29 00:00:00", "02-26 00:00:00", "03-31 00:00:00"]);
    // 15 May 2027 is a Saturday, 15 August a Sunday.
    check("0 0 15W 5,6,8 *", &["05-14 00:00:00", "06-15 00:00:00", "08-16 00:00:00"]);
    // 1 May 2027 is a Saturday, and the day before is in April.
    check("0 0 1W 5 *", &["05-03 00:00:00"]);
    // 31 October 2027 is a Sunday, and the day after is in November; June has no day 31.
    check("0 0 31w 6,10 *", &["10-29 00:00:00"]);
    check("0 0 ? * *", &["01-02 00:00:00", "01-03 00:00:00"]);
}

#[test]
fn months_by_number_and_name() {
    check("0 0 1 3,6 *", &["03-01 00:00:00", "06-01 00:00:00", "2028-03-01 00:00:00"]);
    check("0 0 1 JAN-mar *", &["02-01 00:00:00", "03-01 00:00:00", "2028-01-01 00:00:00"]);
    check("0 0 1 */6 *", &["07-01 00:00:00", "2028-01-01 00:00:00"]);
    check("0 0 1 Dec *", &["12-01 00:00:00"]);
}

#[test]
fn weekdays_by_number_and_name() {
    check("0 0 * * 1-5", &["01-04 00:00:00", "01-05 00:00:00"]);
    for sunday in ["0", "7", "SUN", "sun", "0,7"] {
        check(&format!("0 0 * * {sunday}"), &["01-03 00:00:00", "01-10 00:00:00"]);
    }
    check("0 0 * * MON,WED", &["01-04 00:00:00", "01-06 00:00:00", "01-11 00:00:00"]);
    // A week may end with Sunday.
    for range in ["SAT-SUN", "6-7", "6-0"] {
        check(&format!("0 0 * * {range}"), &["01-02 00:00:00", "01-03 00:00:00", "01-09 00:00:00"]);
    }
    check("0 0 * * */3", &["01-02 00:00:00", "01-03 00:00:00", "01-06 00:00:00"]);
    check("0 0 * * 1#2", &["01-11 00:00:00", "02-08 00:00:00"]);
    check("0 0 * * fri#5", &["01-29 00:00:00", "04-30 00:00:00"]);
    check("0 0 * * 5L", &["01-29 00:00:00", "02-26 00:00:00", "03-26 00:00:00"]);
    check("0 0 * * FRIL", &["01-29 00:00:00", "02-26 00:00:00"]);
    check("0 0 * * 1#1,5L", &["01-04 00:00:00", "01-29 00:00:00", "02-01 00:00:00"]);
    check("0 0 ? * 1", &["01-04 00:00:00"]);
}

#[test]
fn days_and_weekdays_both_restricted_are_either() {
    // Friday the 8th, the 13th, Friday the 15th.
    check("0 0 13 * 5", &["01-08 00:00:00", "01-13 00:00:00", "01-15 00:00:00"]);
    // By value, not by the star: all days are no restriction, however they are written.
    check("0 0 1-31 * 5", &["01-08 00:00:00", "01-15 00:00:00"]);
    check("0 0 13 * 0-6", &["01-13 00:00:00", "02-13 00:00:00"]);
    check("0 0 */10 * 5", &["01-08 00:00:00", "01-11 00:00:00", "01-15 00:00:00"]);
}

#[test]
fn nicknames() {
    check("@hourly", &["01-01 01:00:00", "01-01 02:00:00"]);
    check("@daily", &["01-02 00:00:00"]);
    check("@midnight", &["01-02 00:00:00"]);
    check("@weekly", &["01-03 00:00:00"]);
    check("@monthly", &["02-01 00:00:00"]);
    check("@yearly", &["2028-01-01 00:00:00"]);
    check(" @Annually ", &["2028-01-01 00:00:00"]);
}
