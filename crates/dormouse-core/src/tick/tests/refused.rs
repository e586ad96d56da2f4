//! Bad input: the error names the field, the text and the fix.

use jiff::tz::TimeZoneDatabase;

use crate::error::Code;
use crate::tick::{Cron, Rule, RuleForm, preview};

fn check(text: &str, expected: &str) {
    let error = Cron::new(text, "UTC", &TimeZoneDatabase::bundled()).unwrap_err();
    assert_eq!(error.code, Code::Invalid);
    assert_eq!(error.text, expected, "{text}");
}

#[test]
fn a_value_beyond_its_field() {
    check("60 * * * *", "cron: minutes \"60\": 0-59");
    check("-1 * * * *", "cron: minutes \"-1\": 0-59");
    check("+1 * * * *", "cron: minutes \"+1\": 0-59");
    check("61 0 0 * * *", "cron: seconds \"61\": 0-59");
    check("0 24 * * *", "cron: hours \"24\": 0-23");
    check("0 0 0 * *", "cron: days \"0\": 1-31, L, LW or 1W-31W");
    check("0 0 32W * *", "cron: days \"32W\": 1-31, L, LW or 1W-31W");
    check("0 0 1-5W * *", "cron: days \"1-5W\": 1-31, L, LW or 1W-31W");
    check("0 0 * 13 *", "cron: months \"13\": 1-12 or JAN-DEC");
    check("0 0 * January *", "cron: months \"January\": 1-12 or JAN-DEC");
    check("0 0 * * 8", "cron: weekdays \"8\": 0-7 or SUN-SAT, n#1-n#5, nL");
    check("0 0 * * 1#6", "cron: weekdays \"1#6\": behind # write 1-5");
    check("0 0 * * 1#", "cron: weekdays \"1#\": behind # write 1-5");
    check("0 0 * * L", "cron: weekdays \"L\": L needs a weekday: 5L is the last Friday");
    check("99999999999 * * * *", "cron: minutes \"99999999999\": 0-59");
    check("? * * * *", "cron: minutes \"?\": 0-59");
    check("L * * * *", "cron: minutes \"L\": 0-59");
}

#[test]
fn a_form_that_other_systems_have() {
    check(
        "0 0 L-3 * *",
        "cron: days \"L-3\": there is no day before the last: write L, LW, or days like 26-28",
    );
    check(
        "0 0 1 1 * 2027",
        "cron \"0 0 1 1 * 2027\": \"2027\" looks like a year: there is no field for years, and of \
         6 fields the first is seconds; leave it out",
    );
    check(
        "0 0 0 1 1 ? 2027",
        "cron \"0 0 0 1 1 ? 2027\" has 7 fields: write 5 fields (minutes hours days months \
         weekdays), or 6 with seconds first, as in \"0 3 * * 1-5\"; there is no field for years",
    );
    check(
        "@every 5m",
        "cron \"@every 5m\": give the span in the field `every`, as \"5m\", instead of `cron`",
    );
    check(
        "@reboot",
        "cron \"@reboot\": write one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, \
         @annually, or 5 fields",
    );
    check(
        "TZ=Europe/Berlin 0 0 * * *",
        "cron: \"TZ=Europe/Berlin\": give the zone in the field `zone`, and here the 5 or 6 \
         fields alone",
    );
    check("H * * * *", "cron: minutes \"H\": there is no H: choose a value, 0-59");
    check("0 H(0-7) * * *", "cron: hours \"H(0-7)\": there is no H: choose a value, 0-23");
}

#[test]
fn a_malformed_list_range_or_step() {
    check("*/0 * * * *", "cron: minutes \"*/0\": the step is 1-59");
    check("*/70 * * * *", "cron: minutes \"*/70\": the step is 1-59");
    check("0 */24 * * *", "cron: hours \"*/24\": the step is 1-23");
    check("*/ * * * *", "cron: minutes \"*/\": the step is 1-59");
    check("0/5 * * * *", "cron: minutes \"0/5\": a step needs a range: write 0-59/5");
    check("1,,2 * * * *", "cron: minutes \"1,,2\": a value is missing at a comma: write 1,2");
    check(", * * * *", "cron: minutes \",\": a value is missing at a comma: write 1,2");
    check("0 5-1 * * *", "cron: hours \"5-1\": a range goes upwards: write 5-23,0-1");
    check("0 0 * * FRI-MON", "cron: weekdays \"FRI-MON\": a range goes upwards: write 5-7,0-1");
    check("1-2-3 * * * *", "cron: minutes \"1-2-3\": 0-59");
}

#[test]
fn a_text_that_is_no_expression() {
    let form = "write 5 fields (minutes hours days months weekdays), or 6 with seconds first, as \
                in \"0 3 * * 1-5\"";
    check("", &format!("cron is empty: {form}"));
    check("   ", &format!("cron is empty: {form}"));
    check("0 3 * *", &format!("cron \"0 3 * *\" has 4 fields: {form}"));
    let ascii = "write digits, letters and signs of ASCII, and spaces between the fields";
    check("0\t3 * * *", &format!("cron contains '\\t': {ascii}"));
    check("0 3 * * *\n", &format!("cron contains '\\n': {ascii}"));
    check("\0 3 * * *", &format!("cron contains '\\0': {ascii}"));
    check("٣ 3 * * *", &format!("cron contains '٣': {ascii}"));
    check(
        &",".repeat(10_240),
        "cron has 10240 bytes, at most 256: write ranges and steps instead of lists",
    );
}

#[test]
fn a_rule_that_never_comes() {
    let why = "never comes: none of its months has such a day: change days or months";
    for text in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30W 2 *", "0 0 31 2 *"] {
        check(text, &format!("cron {text:?} {why}"));
    }
    // Each minute of an hour that is left out whenever it would come.
    let form =
        RuleForm { cron: Some("* 2 * 3 7L"), zone: Some("Europe/Berlin"), ..RuleForm::default() };
    let error = Rule::new(&form, 1_800_000_000_000, &TimeZoneDatabase::bundled()).unwrap_err();
    assert_eq!(
        error.text,
        "cron \"* 2 * 3 7L\" never comes: no tick within 45 years (every minute of hour 2 on the \
         last Sunday of the month in March, Europe/Berlin): change hours or days"
    );
}

#[test]
fn fields_that_do_not_go_together() {
    let check = |form: RuleForm<'_>, expected: &str| {
        let error = Rule::new(&form, 0, &TimeZoneDatabase::bundled()).unwrap_err();
        assert_eq!((error.code, &*error.text), (Code::Invalid, expected));
    };
    let none = RuleForm::default();
    check(none, "there is no rule: give one of cron, every and gap");
    check(
        RuleForm { cron: Some("@daily"), every_ms: Some(1_000), ..none },
        "cron and every are given: give one of cron, every and gap",
    );
    check(
        RuleForm { cron: Some("@daily"), every_ms: Some(1_000), gap_ms: Some(1), ..none },
        "cron and every and gap are given: give one of cron, every and gap",
    );
    check(
        RuleForm { every_ms: Some(1_000), zone: Some("Europe/Berlin"), ..none },
        "zone goes with cron, not with every or gap, which count real time: leave zone out",
    );
    check(RuleForm { every_ms: Some(99), ..none }, "every is 99 ms; give 100 ms to 100 years");
    check(RuleForm { gap_ms: Some(-5), ..none }, "gap is -5 ms; give 100 ms to 100 years");
    check(
        RuleForm { gap_ms: Some(i64::MAX), ..none },
        "gap is 9223372036854775807 ms; give 100 ms to 100 years",
    );
}

#[test]
fn a_preview_beyond_its_limits() {
    let check = |from_ms, limit, expected: &str| {
        let form = RuleForm { cron: Some("@daily"), ..RuleForm::default() };
        let error = preview(&form, from_ms, limit, &TimeZoneDatabase::bundled()).unwrap_err();
        assert_eq!((error.code, &*error.text), (Code::Invalid, expected));
    };
    check(0, 0, "limit is 0; give 1 to 1000");
    check(0, 1_001, "limit is 1001; give 1 to 1000");
    check(u64::MAX, 1, "from is 18446744073709551615 ms; give 0 to 33000000000000 ms");
}
