//! Ticks: the instants of a rule that repeats. Pure: no clock is read, and the time zones are an
//! argument as the time is.
//!
//! Reading order: `calendar`, `fields` (which local times a cron rule chooses), `regime` (how local
//! time relates to instants in a zone), `cron` (the two together), `parse`.

mod calendar;
mod cron;
mod every;
mod fields;
mod notes;
mod parse;
mod preview;
mod regime;
mod words;
mod zone;

#[cfg(test)]
mod tests;

use jiff::tz::TimeZoneDatabase;

pub use cron::Cron;
pub use every::Every;
pub use preview::{Preview, preview};
pub use zone::{UTC, Zone};

use crate::error::Error;
use crate::limits::{EVERY_MS_MAX, EVERY_MS_MIN, TICK_AHEAD_YEARS_MAX};

/// A rule as its fields were given; exactly one of `cron`, `every_ms` and `gap_ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleForm<'t> {
    /// A cron expression.
    pub cron: Option<&'t str>,
    /// The zone of the cron expression; UTC unless given.
    pub zone: Option<&'t str>,
    /// The span between two ticks.
    pub every_ms: Option<i64>,
    /// The span from the end of one job to the next tick.
    pub gap_ms: Option<i64>,
}

/// A rule that has been checked.
#[derive(Clone, Debug)]
pub enum Rule {
    /// By the calendar of a zone.
    Cron(Box<Cron>),
    /// At equal distances.
    Every(Every),
    /// This many ms after the job before has ended.
    Gap(u64),
}

impl Rule {
    /// Checks a rule that begins at an instant: the first tick comes after it, and `every` is
    /// counted from it.
    pub fn new(form: &RuleForm<'_>, from_ms: u64, zones: &TimeZoneDatabase) -> Result<Rule, Error> {
        let rule = Rule::read(form, from_ms, zones)?;
        if let Rule::Cron(cron) = &rule
            && cron.next(from_ms).is_none()
        {
            let (text, words) = (form.cron.unwrap_or_default(), cron.words());
            return Err(Error::invalid(format!(
                "cron {text:?} never comes: no tick within {TICK_AHEAD_YEARS_MAX} years ({words}): \
                 change hours or days"
            )));
        }
        Ok(rule)
    }

    /// Reads a rule, whether it ever ticks or not; `every` is counted from an instant.
    pub fn read(
        form: &RuleForm<'_>,
        from_ms: u64,
        zones: &TimeZoneDatabase,
    ) -> Result<Rule, Error> {
        let rule = match (form.cron, form.every_ms, form.gap_ms) {
            (Some(text), None, None) => {
                let cron = Cron::new(text, form.zone.unwrap_or(UTC), zones)?;
                Rule::Cron(Box::new(cron))
            }
            (None, Some(ms), None) => {
                let span_ms = span_within("every", ms)?;
                Rule::Every(Every { anchor_ms: from_ms, span_ms })
            }
            (None, None, Some(ms)) => Rule::Gap(span_within("gap", ms)?),
            (None, None, None) => {
                return Err(Error::invalid("there is no rule: give one of cron, every and gap"));
            }
            given => return Err(several(given)),
        };
        if let (None, Some(_)) = (form.cron, form.zone) {
            let text = "zone goes with cron, not with every or gap, which count real time: leave \
                        zone out";
            return Err(Error::invalid(text));
        }
        Ok(rule)
    }

    /// The first tick after an instant. Of a gap: after a job that ended then.
    pub fn next(&self, after_ms: u64) -> Option<u64> {
        match self {
            Rule::Cron(cron) => cron.next(after_ms),
            Rule::Every(every) => every.next(after_ms),
            Rule::Gap(gap_ms) => after_ms.checked_add(*gap_ms),
        }
    }

    /// The last tick after one instant and up to another, that included.
    pub fn previous(&self, after_ms: u64, until_ms: u64) -> Option<u64> {
        let first_ms = self.next(after_ms).filter(|&first_ms| first_ms <= until_ms)?;
        match self {
            Rule::Cron(cron) => cron.previous(until_ms),
            Rule::Every(every) => every.previous(until_ms),
            // The next counts from the end of its job.
            Rule::Gap(_) => Some(first_ms),
        }
    }

    /// The number of ticks after one instant and up to another, that included.
    pub fn count(&self, after_ms: u64, until_ms: u64) -> u64 {
        match self {
            Rule::Cron(_) if until_ms <= after_ms => 0,
            Rule::Cron(cron) => cron.count(after_ms, until_ms),
            Rule::Every(every) => every.count(after_ms, until_ms),
            Rule::Gap(_) => self.next(after_ms).map_or(0, |tick_ms| u64::from(tick_ms <= until_ms)),
        }
    }

    /// A tick by the clock of the rule's zone; `None` if that is UTC, or there is none.
    fn local(&self, tick_ms: u64) -> Option<String> {
        match self {
            Rule::Cron(cron) => cron.zone.local(tick_ms),
            Rule::Every(_) | Rule::Gap(_) => None,
        }
    }

    /// The rule in words.
    pub fn words(&self) -> String {
        match self {
            Rule::Cron(cron) => cron.words(),
            Rule::Every(every) => format!("every {}", words::span(every.span_ms)),
            Rule::Gap(gap_ms) => format!("{} after the job before has ended", words::span(*gap_ms)),
        }
    }

    /// What happens on special days of the year after an instant.
    pub fn notes(&self, from_ms: u64) -> Vec<String> {
        match self {
            Rule::Cron(cron) => cron.notes(from_ms),
            Rule::Every(_) => Vec::new(),
            Rule::Gap(_) => {
                vec!["counts from the end of each job: these are the earliest ticks".to_owned()]
            }
        }
    }
}

fn several(given: (Option<&str>, Option<i64>, Option<i64>)) -> Error {
    let names = [given.0.map(|_| "cron"), given.1.map(|_| "every"), given.2.map(|_| "gap")];
    let names: Vec<&str> = names.into_iter().flatten().collect();
    Error::invalid(format!("{} are given: give one of cron, every and gap", names.join(" and ")))
}

fn span_within(field: &str, ms: i64) -> Result<u64, Error> {
    let within = u64::try_from(ms).ok();
    let within = within.filter(|ms| (EVERY_MS_MIN..=EVERY_MS_MAX).contains(ms));
    within.ok_or_else(|| {
        Error::invalid(format!("{field} is {ms} ms; give {EVERY_MS_MIN} ms to 100 years"))
    })
}
