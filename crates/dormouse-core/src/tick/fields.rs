//! The fields of a cron rule as sets of bits, and the local times they choose.
//!
//! A local time is counted in seconds since 1970-01-01 00:00:00 of the local calendar, whatever
//! instant that is. All bounds are given by the caller, so every search ends.

use super::calendar::{DAY_S, Month};

const ALL_MINUTES: u64 = (1 << 60) - 1;
const ALL_HOURS: u32 = (1 << 24) - 1;
const ALL_DAYS: u32 = !1;
const ALL_WEEKDAYS: u8 = (1 << 7) - 1;

/// What a cron rule chooses. A bit n stands for the value n; none of the sets is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u32,
    pub(super) days: Days,
    pub(super) months: u16,
    pub(super) weekdays: Weekdays,
}

/// Days of a month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Days {
    /// These days.
    pub(super) on: u32,
    /// For each of these days, the weekday nearest to it in the same month (`nW`).
    pub(super) near: u32,
    /// The last day (`L`).
    pub(super) last: bool,
    /// The last day from Monday to Friday (`LW`).
    pub(super) last_weekday: bool,
}

/// Days of a week; bit 0 is Sunday.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weekdays {
    /// These, each week.
    pub(super) on: u8,
    /// The first of these in a month, the second and so on (`n#k`).
    pub(super) nth: [u8; 5],
    /// The last of these in a month (`nL`).
    pub(super) last: u8,
}

impl Days {
    pub(super) fn is_every(&self) -> bool {
        self.on == ALL_DAYS
    }

    fn of(&self, month: Month) -> u32 {
        let mut days = self.on & month.all_days();
        if self.last {
            days |= 1 << month.length;
        }
        if self.last_weekday {
            days |= 1 << nearest_weekday(month, month.length);
        }
        let mut near = self.near & month.all_days();
        while near != 0 {
            days |= 1 << nearest_weekday(month, near.trailing_zeros());
            near &= near - 1;
        }
        days
    }
}

impl Weekdays {
    pub(super) fn is_every(&self) -> bool {
        self.on == ALL_WEEKDAYS
    }

    fn of(&self, month: Month) -> u32 {
        // Some of these bits are beyond the 31 days of the longest month.
        let mut days = 0_u64;
        for weekday in 0..7 {
            let first = 1 + (weekday + 7 - month.first_weekday()) % 7;
            let has = |set: u8| set >> weekday & 1 == 1;
            if has(self.on) {
                // Days 1, 8, 15, 22 and 29, moved to this weekday.
                days |= 0x2040_8102 << (first - 1);
            }
            for (nth, set) in (0..).zip(self.nth) {
                if has(set) {
                    days |= 1 << (first + 7 * nth);
                }
            }
            if has(self.last) {
                days |= 1 << (first + (month.length - first) / 7 * 7);
            }
        }
        days as u32 & month.all_days()
    }
}

/// The day from Monday to Friday that is nearest to a day and in the same month.
fn nearest_weekday(month: Month, day: u32) -> u32 {
    match (month.first_weekday() + day - 1) % 7 {
        // Sunday.
        0 if day == month.length => day - 2,
        0 => day + 1,
        // Saturday.
        6 if day == 1 => day + 2,
        6 => day - 1,
        _ => day,
    }
}

impl Fields {
    /// Whether the rule names times of day, so that each is meant once a day, also when clocks
    /// change. Otherwise it is a beat, which goes on with real time.
    pub(super) fn is_clock(&self) -> bool {
        self.hours != ALL_HOURS && self.minutes != ALL_MINUTES
    }

    /// Whether there is any year that has such a day. A year begins on one of seven weekdays and is
    /// a leap year or not, and each of these 14 kinds is found in 28 years without a missing leap
    /// year.
    pub(super) fn has_days(&self) -> bool {
        let mut month = Month::of_day(0);
        while month.year < 1_970 + 28 {
            if self.days_of(month) != 0 {
                return true;
            }
            month = month.next();
        }
        false
    }

    /// The chosen days of a month: days and weekdays both restricted mean either of them.
    pub(super) fn days_of(&self, month: Month) -> u32 {
        if self.months >> month.month & 1 == 0 {
            return 0;
        }
        match (self.days.is_every(), self.weekdays.is_every()) {
            (true, true) => month.all_days(),
            (true, false) => self.weekdays.of(month),
            (false, true) => self.days.of(month),
            (false, false) => self.days.of(month) | self.weekdays.of(month),
        }
    }

    /// The first chosen local time in `from..end`.
    pub(super) fn first_in(&self, from: i64, end: i64) -> Option<i64> {
        if from >= end {
            return None;
        }
        let (day, second) = split(from);
        let today = self.has_day(day).then(|| self.time_from(second)).flatten();
        let local = match today {
            Some(second) => day * DAY_S + second,
            None => self.day_from(day + 1, split(end - 1).0)? * DAY_S + self.time_from(0)?,
        };
        (local < end).then_some(local)
    }

    /// The last chosen local time in `from..end`.
    pub(super) fn last_in(&self, from: i64, end: i64) -> Option<i64> {
        if from >= end {
            return None;
        }
        let (day, second) = split(end - 1);
        let today = self.has_day(day).then(|| self.time_until(second)).flatten();
        let local = match today {
            Some(second) => day * DAY_S + second,
            None => self.day_until(day - 1, split(from).0)? * DAY_S + self.time_until(DAY_S - 1)?,
        };
        (local >= from).then_some(local)
    }

    /// The number of chosen local times in `from..end`.
    pub(super) fn count_in(&self, from: i64, end: i64) -> u64 {
        if from >= end {
            return 0;
        }
        let ((first, begin), (last, stop)) = (split(from), split(end));
        let part = |day, second| if self.has_day(day) { self.times_before(second) } else { 0 };
        let whole = self.days_between(first, last) * self.times_before(DAY_S);
        whole + part(last, stop) - part(first, begin)
    }

    pub(super) fn has_local(&self, local: i64) -> bool {
        self.first_in(local, local + 1).is_some()
    }

    fn has_day(&self, day: i64) -> bool {
        let month = Month::of_day(day);
        self.days_of(month) >> (day - month.first_day + 1) & 1 == 1
    }

    /// The first chosen day in `day..=last`.
    fn day_from(&self, day: i64, last: i64) -> Option<i64> {
        let mut month = Month::of_day(day);
        let mut days = self.days_of(month) & u32::MAX << (day - month.first_day + 1);
        loop {
            if days != 0 {
                let found = month.first_day - 1 + i64::from(days.trailing_zeros());
                return (found <= last).then_some(found);
            }
            month = month.next();
            if month.first_day > last {
                return None;
            }
            days = self.days_of(month);
        }
    }

    /// The last chosen day in `first..=day`.
    fn day_until(&self, day: i64, first: i64) -> Option<i64> {
        let mut month = Month::of_day(day);
        let mut days = self.days_of(month) & up_to((day - month.first_day + 1) as u32);
        loop {
            if days != 0 {
                let found = month.first_day - 1 + i64::from(days.ilog2());
                return (found >= first).then_some(found);
            }
            if month.first_day <= first {
                return None;
            }
            month = month.previous();
            days = self.days_of(month);
        }
    }

    /// The number of chosen days in `first..end`.
    fn days_between(&self, first: i64, end: i64) -> u64 {
        let mut month = Month::of_day(first);
        let mut count = 0;
        while month.first_day < end {
            let mut days = self.days_of(month);
            if first > month.first_day {
                days &= u32::MAX << (first - month.first_day + 1);
            }
            if end - month.first_day < i64::from(month.length) {
                days &= up_to((end - month.first_day) as u32);
            }
            count += u64::from(days.count_ones());
            month = month.next();
        }
        count
    }

    /// The first chosen second of a day from one on.
    fn time_from(&self, second: i64) -> Option<i64> {
        let (h, m, s) = clock_of(second);
        let hours = u64::from(self.hours);
        let first = |set: u64| set.trailing_zeros();
        if hours >> h & 1 == 1 {
            if self.minutes >> m & 1 == 1
                && let Some(s) = from(self.seconds, s)
            {
                return Some(second_of(h, m, s));
            }
            if let Some(m) = from(self.minutes, m + 1) {
                return Some(second_of(h, m, first(self.seconds)));
            }
        }
        let h = from(hours, h + 1)?;
        Some(second_of(h, first(self.minutes), first(self.seconds)))
    }

    /// The last chosen second of a day up to one.
    fn time_until(&self, second: i64) -> Option<i64> {
        let (h, m, s) = clock_of(second);
        let hours = u64::from(self.hours);
        if hours >> h & 1 == 1 {
            if self.minutes >> m & 1 == 1
                && let Some(s) = before(self.seconds, s + 1)
            {
                return Some(second_of(h, m, s));
            }
            if let Some(m) = before(self.minutes, m) {
                return Some(second_of(h, m, self.seconds.ilog2()));
            }
        }
        let h = before(hours, h)?;
        Some(second_of(h, self.minutes.ilog2(), self.seconds.ilog2()))
    }

    /// The number of chosen seconds of a day before one.
    fn times_before(&self, second: i64) -> u64 {
        let (h, m, s) = clock_of(second);
        let hours = u64::from(self.hours);
        let below = |set: u64, value: u32| u64::from((set & ((1 << value) - 1)).count_ones());
        let (per_minute, per_hour) = (below(self.seconds, 60), below(self.minutes, 60));
        let mut count = below(hours, h) * per_hour * per_minute;
        if hours >> h & 1 == 1 {
            count += below(self.minutes, m) * per_minute;
            if self.minutes >> m & 1 == 1 {
                count += below(self.seconds, s);
            }
        }
        count
    }
}

/// A local time as day, and second of that day.
pub(super) fn split(local: i64) -> (i64, i64) {
    (local.div_euclid(DAY_S), local.rem_euclid(DAY_S))
}

fn clock_of(second: i64) -> (u32, u32, u32) {
    ((second / 3_600) as u32, (second / 60 % 60) as u32, (second % 60) as u32)
}

fn second_of(h: u32, m: u32, s: u32) -> i64 {
    i64::from(h * 3_600 + m * 60 + s)
}

/// The smallest value of a set from `value` on, which is at most 63.
fn from(set: u64, value: u32) -> Option<u32> {
    let rest = set & u64::MAX << value;
    (rest != 0).then(|| rest.trailing_zeros())
}

/// The greatest value of a set below `value`, which is at most 63.
fn before(set: u64, value: u32) -> Option<u32> {
    (set & ((1 << value) - 1)).checked_ilog2()
}

/// The days up to one.
fn up_to(day: u32) -> u32 {
    ((2_u64 << day) - 1) as u32
}
