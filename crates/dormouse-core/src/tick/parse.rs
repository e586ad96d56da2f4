//! Reads a cron expression. What is refused is refused with the field, the text, and what to write.

use super::fields::{Days, Fields, Weekdays};
use crate::error::Error;
use crate::limits::CRON_BYTES_MAX;

/// How a field is called and what it may contain.
struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    /// Three letters for each value from `min` on.
    names: &'static [&'static str],
    /// What it may contain, for people.
    range: &'static str,
}

const fn plain(name: &'static str, min: u32, max: u32, range: &'static str) -> Field {
    Field { name, min, max, names: &[], range }
}

const SECONDS: Field = plain("seconds", 0, 59, "0-59");
const MINUTES: Field = plain("minutes", 0, 59, "0-59");
const HOURS: Field = plain("hours", 0, 23, "0-23");
const DAYS: Field = plain("days", 1, 31, "1-31, L, LW or 1W-31W");
const MONTHS: Field = Field {
    name: "months",
    min: 1,
    max: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
    range: "1-12 or JAN-DEC",
};
const WEEKDAYS: Field = Field {
    name: "weekdays",
    min: 0,
    max: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
    range: "0-7 or SUN-SAT, n#1-n#5, nL",
};

const NICKNAMES: &[(&str, &str)] = &[
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// Reads 5 fields, or 6 with seconds first, or a nickname like `@daily`.
pub(super) fn parse(text: &str) -> Result<Fields, Error> {
    check_text(text)?;
    let text = text.trim_matches(' ');
    let text = if text.starts_with('@') { nickname(text)? } else { text };
    let parts: Vec<&str> = text.split(' ').filter(|part| !part.is_empty()).collect();
    if let Some(zone) = parts.first().filter(|part| part.contains('=')) {
        let fix = "give the zone in the field `zone`, and here the 5 or 6 fields alone";
        return Err(Error::invalid(format!("cron: {zone:?}: {fix}")));
    }
    if let [.., year] = parts.as_slice()
        && parts.len() == 6
        && number(year).is_some_and(|year| (1970..=2199).contains(&year))
    {
        let fix = "there is no field for years, and of 6 fields the first is seconds; leave it out";
        return Err(Error::invalid(format!("cron {text:?}: {year:?} looks like a year: {fix}")));
    }
    let (seconds, rest) = match parts.as_slice() {
        [seconds, rest @ ..] if parts.len() == 6 => (*seconds, rest),
        rest if rest.len() == 5 => ("0", rest),
        _ => return Err(wrong_number(text, parts.len())),
    };
    let fields = Fields {
        seconds: values(&SECONDS, seconds)?,
        minutes: values(&MINUTES, rest[0])?,
        hours: values(&HOURS, rest[1])? as u32,
        days: days(rest[2])?,
        months: values(&MONTHS, rest[3])? as u16,
        weekdays: weekdays(rest[4])?,
    };
    if !fields.has_days() {
        let why = "never comes: none of its months has such a day";
        return Err(Error::invalid(format!("cron {text:?} {why}: change days or months")));
    }
    Ok(fields)
}

fn check_text(text: &str) -> Result<(), Error> {
    if text.len() > CRON_BYTES_MAX {
        let size = text.len();
        let fix = "write ranges and steps instead of lists";
        return Err(Error::invalid(format!(
            "cron has {size} bytes, at most {CRON_BYTES_MAX}: {fix}"
        )));
    }
    let wrong = text.chars().find(|c| !matches!(c, ' '..='~'));
    wrong.map_or(Ok(()), |c| {
        let fix = "write digits, letters and signs of ASCII, and spaces between the fields";
        Err(Error::invalid(format!("cron contains {c:?}: {fix}")))
    })
}

fn nickname(text: &str) -> Result<&'static str, Error> {
    let known = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    if let Some((_, meaning)) = known {
        return Ok(meaning);
    }
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    if word.eq_ignore_ascii_case("@every") {
        let span = if rest.is_empty() { "5m" } else { rest.trim() };
        let fix = format!("give the span in the field `every`, as {span:?}, instead of `cron`");
        return Err(Error::invalid(format!("cron {text:?}: {fix}")));
    }
    let names: Vec<&str> = NICKNAMES.iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    Err(Error::invalid(format!("cron {text:?}: write one of {names}, or 5 fields")))
}

fn wrong_number(text: &str, number: usize) -> Error {
    const FORM: &str = "5 fields (minutes hours days months weekdays), or 6 with seconds first, \
                        as in \"0 3 * * 1-5\"";
    match number {
        0 => Error::invalid(format!("cron is empty: write {FORM}")),
        7 => Error::invalid(format!(
            "cron {text:?} has 7 fields: write {FORM}; there is no field for years"
        )),
        _ => Error::invalid(format!("cron {text:?} has {number} fields: write {FORM}")),
    }
}

/// A field of plain values, as bits.
fn values(field: &Field, text: &str) -> Result<u64, Error> {
    let mut set = 0;
    for item in items(field, text)? {
        set |= item_values(field, text, item)?;
    }
    Ok(set)
}

fn days(text: &str) -> Result<Days, Error> {
    let mut days = Days::default();
    for item in items(&DAYS, text)? {
        if item.eq_ignore_ascii_case("L") {
            days.last = true;
        } else if item.eq_ignore_ascii_case("LW") {
            days.last_weekday = true;
        } else if item.starts_with(['L', 'l']) && item[1..].starts_with('-') {
            let fix = "there is no day before the last: write L, LW, or days like 26-28";
            return Err(wrong(&DAYS, text, fix));
        } else if let Some(day) = item.strip_suffix(['W', 'w']) {
            days.near |= 1 << value(&DAYS, text, day)?;
        } else {
            days.on |= item_values(&DAYS, text, item)? as u32;
        }
    }
    Ok(days)
}

fn weekdays(text: &str) -> Result<Weekdays, Error> {
    let mut weekdays = Weekdays::default();
    for item in items(&WEEKDAYS, text)? {
        if let Some((weekday, nth)) = item.split_once('#') {
            let weekday = value(&WEEKDAYS, text, weekday)? % 7;
            let nth = number(nth).filter(|nth| (1..=5).contains(nth));
            let nth = nth.ok_or_else(|| wrong(&WEEKDAYS, text, "behind # write 1-5"))?;
            weekdays.nth[nth as usize - 1] |= 1 << weekday;
        } else if let Some(weekday) = item.strip_suffix(['L', 'l']) {
            if weekday.is_empty() {
                return Err(wrong(&WEEKDAYS, text, "L needs a weekday: 5L is the last Friday"));
            }
            weekdays.last |= 1 << (value(&WEEKDAYS, text, weekday)? % 7);
        } else {
            let set = item_values(&WEEKDAYS, text, item)? as u8;
            // 7 is Sunday, as 0 is.
            weekdays.on |= set & 0x7f | set >> 7;
        }
    }
    Ok(weekdays)
}

/// The parts of a list.
fn items<'t>(field: &Field, text: &'t str) -> Result<std::str::Split<'t, char>, Error> {
    if text.split(',').any(str::is_empty) {
        return Err(wrong(field, text, "a value is missing at a comma: write 1,2"));
    }
    Ok(text.split(','))
}

/// `*`, a value, or a range; with a step or without.
fn item_values(field: &Field, text: &str, item: &str) -> Result<u64, Error> {
    let (range, step) = match item.split_once('/') {
        None => (item, None),
        Some((range, step)) => (range, Some(step_of(field, text, step)?)),
    };
    let is_day = [DAYS.name, WEEKDAYS.name].contains(&field.name);
    let (first, last) = if range == "*" || is_day && range == "?" && step.is_none() {
        (field.min, field.max)
    } else if let Some((first, last)) = range.split_once('-') {
        range_of(field, text, first, last)?
    } else {
        let first = value(field, text, range)?;
        if let Some(step) = step {
            let fix = format!("a step needs a range: write {range}-{}/{step}", field.max);
            return Err(wrong(field, text, &fix));
        }
        (first, first)
    };
    Ok((first..=last).step_by(step.unwrap_or(1) as usize).fold(0, |set, value| set | 1 << value))
}

fn step_of(field: &Field, text: &str, step: &str) -> Result<u32, Error> {
    let within = number(step).filter(|step| (1..=field.max).contains(step));
    within.ok_or_else(|| wrong(field, text, &format!("the step is 1-{}", field.max)))
}

fn range_of(field: &Field, text: &str, first: &str, last: &str) -> Result<(u32, u32), Error> {
    let (from, to) = (value(field, text, first)?, value(field, text, last)?);
    // A week may end with Sunday, also by name.
    let to = if field.name == WEEKDAYS.name && to == 0 && from > 0 { 7 } else { to };
    if from > to {
        let (min, max) = (field.min, field.max);
        let fix = format!("a range goes upwards: write {from}-{max},{min}-{to}");
        return Err(wrong(field, text, &fix));
    }
    Ok((from, to))
}

/// One value, as a number or by name.
fn value(field: &Field, text: &str, word: &str) -> Result<u32, Error> {
    let named = field.names.iter().position(|name| name.eq_ignore_ascii_case(word));
    let value = named.map(|index| field.min + index as u32).or_else(|| number(word));
    let value = value.filter(|value| (field.min..=field.max).contains(value));
    value.ok_or_else(|| {
        if word.eq_ignore_ascii_case("H") || word.starts_with("H(") {
            let fix = format!("there is no H: choose a value, {}", field.range);
            return wrong(field, text, &fix);
        }
        wrong(field, text, field.range)
    })
}

/// A number of digits alone.
fn number(word: &str) -> Option<u32> {
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| word.parse().ok()).flatten()
}

fn wrong(field: &Field, text: &str, fix: &str) -> Error {
    Error::invalid(format!("cron: {} {text:?}: {fix}", field.name))
}
