//! Days and months of the Gregorian calendar, counted in days since 1970-01-01.

/// Seconds of a day.
pub(super) const DAY_S: i64 = 86_400;

/// One month of one year, as far as days are chosen by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Month {
    pub(super) year: i64,
    /// 1 to 12.
    pub(super) month: u32,
    /// Its first day, in days since 1970-01-01.
    pub(super) first_day: i64,
    /// 28 to 31.
    pub(super) length: u32,
}

impl Month {
    /// The month that has a day.
    pub(super) fn of_day(day: i64) -> Month {
        let (year, month, day_of_month) = date_of(day);
        Month::new(year, month, day - i64::from(day_of_month) + 1)
    }

    /// The month after this one.
    pub(super) fn next(self) -> Month {
        let first_day = self.first_day + i64::from(self.length);
        match self.month {
            12 => Month::new(self.year + 1, 1, first_day),
            month => Month::new(self.year, month + 1, first_day),
        }
    }

    /// The month before this one.
    pub(super) fn previous(self) -> Month {
        let (year, month) = match self.month {
            1 => (self.year - 1, 12),
            month => (self.year, month - 1),
        };
        Month::new(year, month, self.first_day - i64::from(length_of(year, month)))
    }

    /// The weekday of its first day: 0 is Sunday.
    pub(super) fn first_weekday(self) -> u32 {
        weekday_of(self.first_day)
    }

    /// Bit n for each day n that the month has.
    pub(super) fn all_days(self) -> u32 {
        ((1_u64 << (self.length + 1)) - 2) as u32
    }

    fn new(year: i64, month: u32, first_day: i64) -> Month {
        Month { year, month, first_day, length: length_of(year, month) }
    }
}

/// The weekday of a day: 0 is Sunday. 1970-01-01 was a Thursday.
pub(super) fn weekday_of(day: i64) -> u32 {
    (day + 4).rem_euclid(7) as u32
}

/// Year, month and day of month of a day. Years are counted from 1 March, so that the leap day is
/// the last of its year, and in eras of 400 years, after which the calendar repeats.
pub(super) fn date_of(day: i64) -> (i64, u32, u32) {
    const ERA_DAYS: i64 = 146_097;
    // 0000-03-01, the first day of an era.
    let day = day + 719_468;
    let era = day.div_euclid(ERA_DAYS);
    let day_of_era = day.rem_euclid(ERA_DAYS);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on have 31, 30, 31, 30, 31 days, again and again.
    let from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = (day_of_year - (153 * from_march + 2) / 5 + 1) as u32;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month as u32, day_of_month)
}

fn length_of(year: i64, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_hundred_years_of_days_are_those_of_another_calendar() {
        let mut date = jiff::civil::date(1800, 1, 1);
        let mut month = Month::of_day(-62_091);
        for day in -62_091..-62_091 + 2 * 146_097 {
            let expected = (i64::from(date.year()), date.month() as u32, date.day() as u32);
            assert_eq!(date_of(day), expected);
            let weekday = date.weekday().to_sunday_zero_offset() as u32;
            assert_eq!(weekday_of(day), weekday, "{date}");
            if date.day() == 1 && day > month.first_day {
                assert_eq!(month.next().previous(), month);
                month = month.next();
            }
            assert_eq!(Month::of_day(day), month, "{date}");
            assert_eq!(month.length, date.days_in_month() as u32, "{date}");
            date = date.tomorrow().unwrap();
        }
    }

    #[test]
    fn a_month_has_its_days() {
        let check = |day, length: u32| {
            let month = Month::of_day(day);
            assert_eq!(month.all_days().count_ones(), length);
            assert_eq!(month.all_days() & 1, 0, "there is no day 0");
        };
        check(0, 31);
        check(31, 28);
    }
}
