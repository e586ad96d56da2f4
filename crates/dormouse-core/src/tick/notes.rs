//! What a rule does on special days, for people who check what they wrote.

use super::calendar::{DAY_S, date_of};
use super::cron::Cron;
use super::fields::split;
use super::regime::{Regime, Regimes};

/// Notes of one rule at most: no zone changes its clock so often in a year.
const NOTES_MAX: usize = 8;

impl Cron {
    /// What happens when clocks change in the year after an instant, and which months are passed
    /// over.
    pub fn notes(&self, from_ms: u64) -> Vec<String> {
        let from = (from_ms / 1_000) as i64 + 1;
        let end = from + 365 * DAY_S;
        let regimes = Regimes::around(&self.zone.rules, from);
        let changes = regimes
            .take_while(|regime| regime.start < end)
            .filter(|regime| regime.start >= from)
            .filter_map(|regime| self.note(&regime));
        self.short_months().into_iter().chain(changes).take(NOTES_MAX).collect()
    }

    /// What a change of the clock does to the rule, if it does anything.
    fn note(&self, regime: &Regime) -> Option<String> {
        let (reached, start) = (regime.reached, regime.local_start());
        let is_clock = self.fields.is_clock();
        let is_every_hour = self.fields.hours.count_ones() == 24;
        if let Some(local) = self.left_out(regime) {
            return match (is_clock, is_every_hour) {
                (true, _) => Some(format!(
                    "{} has no {}: ticks at {}",
                    date(local),
                    time(local),
                    time(start)
                )),
                (false, true) => None,
                (false, false) => Some(format!(
                    "{} has no {} to {}: does not tick then",
                    date(local),
                    time(reached),
                    time(start)
                )),
            };
        }
        let local = self.fields.first_in(start, reached)?;
        match (is_clock, is_every_hour) {
            (true, _) => Some(format!(
                "{} has {} twice: ticks the first time only",
                date(local),
                time(local)
            )),
            (false, true) => None,
            (false, false) => Some(format!(
                "{} has {} to {} twice: ticks both times",
                date(local),
                time(start),
                time(reached)
            )),
        }
    }

    /// Days that some of the chosen months do not have.
    fn short_months(&self) -> Option<String> {
        let days = self.fields.days;
        let is_only_days = self.fields.weekdays.is_every()
            && !days.last
            && !days.last_weekday
            && days.near == 0
            && days.on.trailing_zeros() > 28;
        if !is_only_days {
            return None;
        }
        let day = days.on.trailing_zeros();
        let months = u32::from(self.fields.months);
        // Bit n is month n.
        let (february, of_30_days) = (1 << 2, 1 << 4 | 1 << 6 | 1 << 9 | 1 << 11);
        if day == 29 {
            let has_february = months & february != 0;
            return has_february.then(|| "day 29: February has one in leap years only".to_owned());
        }
        let short = months & if day == 30 { february } else { february | of_30_days };
        let (short, all) = (short.count_ones(), months.count_ones());
        (short > 0).then(|| format!("day {day}: {short} of {all} months have none"))
    }
}

fn date(local: i64) -> String {
    let (year, month, day) = date_of(split(local).0);
    format!("{year:04}-{month:02}-{day:02}")
}

fn time(local: i64) -> String {
    let second = split(local).1;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    match second {
        0 => format!("{hour:02}:{minute:02}"),
        _ => format!("{hour:02}:{minute:02}:{second:02}"),
    }
}
