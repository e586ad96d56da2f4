//! Rules in words, and notes.

use super::{cron, ms};
use jiff::tz::TimeZoneDatabase;

use crate::tick::{RuleForm, preview};

#[test]
fn a_rule_in_words() {
    let check = |text: &str, words: &str| {
        assert_eq!(cron(text, "Europe/Berlin").words(), format!("{words}, Europe/Berlin"));
    };
    check("0 3 * * 1-5", "at 03:00 on weekdays");
    check("0 3 * * *", "at 03:00 every day");
    check("@hourly", "every hour");
    check("* * * * *", "every minute");
    check("* * * * * *", "every second");
    check("*/10 * * * * *", "every 10 seconds");
    check("30 * * * * *", "at second 30 of every minute");
    check("*/5 * * * *", "every 5 minutes");
    check("*/7 * * * *", "at minutes 0, 7, 14, 21, 28, 35, 42, 49, 56 of every hour");
    check("*/15 9-17 * * MON,WED", "every 15 minutes of hours 9-17 on Monday and Wednesday");
    check("30 9,12,15 * * 0,6", "at 09:30, 12:30 and 15:30 on weekends");
    check("15 0 3 * * *", "at 03:00:15 every day");
    check(
        "0 */2 * * *",
        "at minute 0 of hours 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 every day",
    );
    check("5,10 * 2 * * *", "at seconds 5, 10 of hour 2 every day");
    check("*/20 0,30 * * * *", "every 20 seconds of minutes 0, 30 of every hour");
    check("0 0 1 1 *", "at 00:00 on day 1 of the month in January");
    check("0 0 1-7,15 JAN,JUL *", "at 00:00 on days 1-7, 15 of the month in January and July");
    check(
        "0 0 LW,15W * *",
        "at 00:00 on the weekday nearest to day 15 and the last weekday of the \
           month",
    );
    check("0 0 L * *", "at 00:00 on the last day of the month");
    check("0 0 13 * 5", "at 00:00 on day 13 of the month or on Friday");
    check(
        "0 0 * * 1#2,5L",
        "at 00:00 on the second Monday of the month and the last Friday of \
           the month",
    );
}

#[test]
fn notes_tell_what_special_days_do() {
    let check = |text: &str, notes: &[&str]| {
        let cron = cron(text, "America/New_York");
        assert_eq!(cron.notes(ms("2027-01-01T00:00:00Z")), notes, "{text}");
    };
    check("30 2 * * *", &["2027-03-14 has no 02:30: ticks at 03:00"]);
    check("30 1 * * *", &["2027-11-07 has 01:30 twice: ticks the first time only"]);
    check("* 2 * * *", &["2027-03-14 has no 02:00 to 03:00: does not tick then"]);
    check("* 1 * * *", &["2027-11-07 has 01:00 to 02:00 twice: ticks both times"]);
    check("0 3 * * *", &[]);
    check("*/5 * * * *", &[]);
    check("0 12 31 * *", &["day 31: 5 of 12 months have none"]);
    check("0 12 30,31 1,2 *", &["day 30: 1 of 2 months have none"]);
    check("0 12 29 * *", &["day 29: February has one in leap years only"]);
    check("0 12 31,L * *", &[]);
    check("0 12 31 1 *", &[]);
}

#[test]
fn a_preview_has_ticks_words_and_notes() {
    let check = |form: RuleForm<'_>, ticks: &[&str], words: &str, notes: usize| {
        let from_ms = ms("2027-03-26T12:00:00Z");
        let preview = preview(&form, from_ms, 3, &TimeZoneDatabase::bundled()).unwrap();
        let ticks: Vec<u64> = ticks.iter().map(|tick| ms(tick)).collect();
        assert_eq!((preview.ticks, &*preview.words), (ticks, words));
        assert_eq!(preview.notes.len(), notes, "{:?}", preview.notes);
    };
    let none = RuleForm::default();
    check(
        RuleForm { cron: Some("30 2 * * *"), zone: Some("Europe/Berlin"), ..none },
        &["2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"],
        "at 02:30 every day, Europe/Berlin",
        2,
    );
    check(
        RuleForm { every_ms: Some(5_400_000), ..none },
        &["2027-03-26T13:30:00Z", "2027-03-26T15:00:00Z", "2027-03-26T16:30:00Z"],
        "every 1h 30m",
        0,
    );
    check(
        RuleForm { gap_ms: Some(1_500), ..none },
        &["2027-03-26T12:00:01.500Z", "2027-03-26T12:00:03Z", "2027-03-26T12:00:04.500Z"],
        "1s 500ms after the job before has ended",
        1,
    );
}
