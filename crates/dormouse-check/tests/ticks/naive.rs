//! Which local times a cron expression chooses, by the definition of each item, one time at a time.

use jiff::civil::{Date, Weekday};

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// An expression, with a table for each part of a time of day.
pub(crate) struct Naive {
    seconds: Vec<bool>,
    minutes: Vec<bool>,
    hours: Vec<bool>,
    days: String,
    months: String,
    weekdays: String,
}

impl Naive {
    pub(crate) fn new(text: &str) -> Naive {
        let mut fields: Vec<&str> = text.split_whitespace().collect();
        if fields.len() == 5 {
            fields.insert(0, "0");
        }
        let table = |field: &str, size: i64| {
            (0..size).map(|n| field.split(',').any(|item| is_in(item, n, (0, size - 1)))).collect()
        };
        Naive {
            seconds: table(fields[0], 60),
            minutes: table(fields[1], 60),
            hours: table(fields[2], 24),
            days: fields[3].to_owned(),
            months: fields[4].to_owned(),
            weekdays: fields[5].to_owned(),
        }
    }

    pub(crate) fn is_clock(&self) -> bool {
        self.hours.contains(&false) && self.minutes.contains(&false)
    }

    pub(crate) fn has_time(&self, second_of_day: i64) -> bool {
        self.hours[(second_of_day / 3_600) as usize]
            && self.minutes[(second_of_day / 60 % 60) as usize]
            && self.seconds[(second_of_day % 60) as usize]
    }

    pub(crate) fn has_date(&self, date: Date) -> bool {
        let month = i64::from(date.month());
        if !self.months.split(',').any(|item| is_in(&numbers(item, &MONTHS, 1), month, (1, 12))) {
            return false;
        }
        let day = self.days.split(',').any(|item| is_day(item, date));
        let weekdays = || self.weekdays.split(',').map(|item| numbers(item, &WEEKDAYS, 0));
        let weekday = weekdays().any(|item| is_weekday(&item, date));
        match (self.has_all_days(), self.has_all_weekdays()) {
            (false, false) => day || weekday,
            _ => day && weekday,
        }
    }

    /// Whether the plain items of the days leave out none.
    pub(crate) fn has_all_days(&self) -> bool {
        let plain = || self.days.split(',').filter(|item| !item.contains(['L', 'W']));
        (1..=31).all(|day| plain().any(|item| is_in(item, day, (1, 31))))
    }

    /// Whether the plain items of the weekdays leave out none.
    pub(crate) fn has_all_weekdays(&self) -> bool {
        let week: Vec<Date> = (2..=8).map(|day| Date::constant(2028, 1, day)).collect();
        let items = self.weekdays.split(',').map(|item| numbers(item, &WEEKDAYS, 0));
        let plain: Vec<String> = items.filter(|item| !item.contains(['L', '#'])).collect();
        week.iter().all(|&day| plain.iter().any(|item| is_weekday(item, day)))
    }
}

/// The item with numbers for names.
fn numbers(item: &str, names: &[&str], first: usize) -> String {
    let mut text = item.to_uppercase();
    for (index, name) in names.iter().enumerate() {
        text = text.replace(name, &(index + first).to_string());
    }
    text
}

/// `*`, `a`, `a-b`, each with `/step` or without.
fn is_in(item: &str, value: i64, (min, max): (i64, i64)) -> bool {
    let (range, step) = item.split_once('/').unwrap_or((item, "1"));
    let (first, last) = match range.split_once('-') {
        _ if range == "*" || range == "?" => (min, max),
        Some((first, last)) => (first.parse().unwrap(), last.parse().unwrap()),
        None => (range.parse().unwrap(), range.parse().unwrap()),
    };
    (first..=last).contains(&value) && (value - first) % step.parse::<i64>().unwrap() == 0
}

fn is_day(item: &str, date: Date) -> bool {
    let is_working = |date: Date| !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday);
    let days = || (1..=date.days_in_month()).map(|n| Date::constant(date.year(), date.month(), n));
    if item == "L" {
        return date == date.last_of_month();
    }
    if item == "LW" {
        return days().rev().find(|&day| is_working(day)) == Some(date);
    }
    if let Some(wanted) = item.strip_suffix('W') {
        let wanted: i8 = wanted.parse().unwrap();
        let nearest =
            days().filter(|&day| is_working(day)).min_by_key(|day| (day.day() - wanted).abs());
        return wanted <= date.days_in_month() && nearest == Some(date);
    }
    is_in(item, i64::from(date.day()), (1, 31))
}

fn is_weekday(item: &str, date: Date) -> bool {
    let weekday = i64::from(date.weekday().to_sunday_zero_offset());
    let is_wanted = |text: &str| text.parse::<i64>().unwrap() % 7 == weekday;
    if let Some((wanted, nth)) = item.split_once('#') {
        return is_wanted(wanted) && (date.day() - 1) / 7 + 1 == nth.parse::<i8>().unwrap();
    }
    if let Some(wanted) = item.strip_suffix('L') {
        return is_wanted(wanted) && date.day() + 7 > date.days_in_month();
    }
    let is_in = |value: i64| is_in(item, value, (0, 7));
    is_in(weekday) || weekday == 0 && is_in(7)
}
