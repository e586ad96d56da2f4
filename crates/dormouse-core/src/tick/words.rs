//! A rule in words, for people who check what they wrote.

use std::fmt::Write as _;

use super::cron::Cron;
use super::fields::{Days, Fields, Weekdays};

const WEEKDAY_NAMES: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTH_NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
const MONDAY_TO_FRIDAY: u8 = 0b011_1110;
const WEEKEND: u8 = 0b100_0001;
const ALL_MONTHS: u16 = 0b1_1111_1111_1110;
/// Times of day up to which each is named.
const NAMED_TIMES_MAX: u32 = 6;

impl Cron {
    /// The rule in words: "at 03:00 on weekdays, Europe/Berlin".
    pub fn words(&self) -> String {
        let fields = &self.fields;
        let mut words = time(fields);
        let days = days(fields);
        if !days.is_empty() {
            words.push(' ');
            words.push_str(&days);
        }
        if fields.months != ALL_MONTHS {
            let names = values(u64::from(fields.months)).map(|n| MONTH_NAMES[n as usize - 1]);
            words.push_str(" in ");
            words.push_str(&joined(names.map(str::to_owned).collect(), "and"));
        }
        words.push_str(", ");
        words.push_str(self.zone.name());
        words
    }
}

/// A span as people write it: "1h 30m".
pub(super) fn span(ms: u64) -> String {
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let mut rest_ms = ms;
    let mut parts = Vec::new();
    for (unit, size_ms) in units {
        if rest_ms >= size_ms {
            parts.push(format!("{}{unit}", rest_ms / size_ms));
            rest_ms %= size_ms;
        }
    }
    parts.join(" ")
}

fn time(fields: &Fields) -> String {
    let (seconds, minutes, hours) = (fields.seconds, fields.minutes, u64::from(fields.hours));
    let (every_minute, every_hour) = (is_all(minutes, 60), is_all(hours, 24));
    if seconds.count_ones() == 1
        && !every_minute
        && !every_hour
        && minutes.count_ones() * hours.count_ones() <= NAMED_TIMES_MAX
    {
        return format!("at {}", joined(times(fields), "and"));
    }
    let of_hours = if every_hour { String::new() } else { format!(" of {}", set(hours, "hour")) };
    if seconds == 1 {
        return match repeated(minutes, 60, "minute") {
            Some(repeated) => repeated + &of_hours,
            None if every_hour && minutes == 1 => "every hour".to_owned(),
            None if every_hour => format!("at {} of every hour", set(minutes, "minute")),
            None => format!("at {}{of_hours}", set(minutes, "minute")),
        };
    }
    let of_minutes = match (every_minute, every_hour) {
        (true, true) => " of every minute".to_owned(),
        (true, false) => of_hours,
        (false, true) => format!(" of {} of every hour", set(minutes, "minute")),
        (false, false) => format!(" of {}{of_hours}", set(minutes, "minute")),
    };
    match repeated(seconds, 60, "second") {
        Some(repeated) if every_minute && every_hour => repeated,
        Some(repeated) => repeated + &of_minutes,
        None => format!("at {}{of_minutes}", set(seconds, "second")),
    }
}

/// Each time of day, of a rule that has few.
fn times(fields: &Fields) -> Vec<String> {
    let second = fields.seconds.trailing_zeros();
    let mut times = Vec::new();
    for hour in values(u64::from(fields.hours)) {
        for minute in values(fields.minutes) {
            let mut time = format!("{hour:02}:{minute:02}");
            if second != 0 {
                // Writing to a string does not fail.
                let _ = write!(time, ":{second:02}");
            }
            times.push(time);
        }
    }
    times
}

/// "every minute", "every 5 minutes": for steps that divide the whole without a rest.
fn repeated(set: u64, size: u32, unit: &str) -> Option<String> {
    if is_all(set, size) {
        return Some(format!("every {unit}"));
    }
    let number = set.count_ones();
    let step = size / number;
    let is_even = number > 1 && size % number == 0;
    let is_step = is_even && (0..number).all(|n| set >> (n * step) & 1 == 1);
    is_step.then(|| format!("every {step} {unit}s"))
}

fn days(fields: &Fields) -> String {
    let (days, weekdays) = (&fields.days, &fields.weekdays);
    match (days.is_every(), weekdays.is_every()) {
        (true, true) if is_all(u64::from(fields.hours), 24) => String::new(),
        (true, true) => "every day".to_owned(),
        (true, false) => of_weekdays(weekdays),
        (false, true) => of_days(days),
        (false, false) => format!("{} or {}", of_days(days), of_weekdays(weekdays)),
    }
}

fn of_days(days: &Days) -> String {
    let mut parts = Vec::new();
    if days.on != 0 {
        parts.push(format!("{} of the month", set(u64::from(days.on), "day")));
    }
    for day in values(u64::from(days.near)) {
        parts.push(format!("the weekday nearest to day {day}"));
    }
    if days.last_weekday {
        parts.push("the last weekday of the month".to_owned());
    }
    if days.last {
        parts.push("the last day of the month".to_owned());
    }
    format!("on {}", joined(parts, "and"))
}

fn of_weekdays(weekdays: &Weekdays) -> String {
    let mut parts = Vec::new();
    match weekdays.on {
        MONDAY_TO_FRIDAY => parts.push("weekdays".to_owned()),
        WEEKEND => parts.push("weekends".to_owned()),
        on => parts.extend(values(u64::from(on)).map(|n| WEEKDAY_NAMES[n as usize].to_owned())),
    }
    for (ordinal, on) in ORDINALS.iter().zip(weekdays.nth) {
        for weekday in values(u64::from(on)) {
            let name = WEEKDAY_NAMES[weekday as usize];
            parts.push(format!("the {ordinal} {name} of the month"));
        }
    }
    for weekday in values(u64::from(weekdays.last)) {
        parts.push(format!("the last {} of the month", WEEKDAY_NAMES[weekday as usize]));
    }
    format!("on {}", joined(parts, "and"))
}

/// "hour 3", "hours 9-17, 20".
fn set(set: u64, unit: &str) -> String {
    let plural = if set.count_ones() == 1 { "" } else { "s" };
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for value in values(set) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == value => *last = value,
            _ => ranges.push((value, value)),
        }
    }
    let ranges = ranges.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    });
    format!("{unit}{plural} {}", ranges.collect::<Vec<_>>().join(", "))
}

/// "a", "a and b", "a, b and c".
fn joined(mut parts: Vec<String>, word: &str) -> String {
    let last = parts.pop().unwrap_or_default();
    match parts.is_empty() {
        true => last,
        false => format!("{} {word} {last}", parts.join(", ")),
    }
}

fn is_all(set: u64, size: u32) -> bool {
    set.count_ones() == size
}

fn values(set: u64) -> impl Iterator<Item = u32> {
    (0..64).filter(move |value| set >> value & 1 == 1)
}
