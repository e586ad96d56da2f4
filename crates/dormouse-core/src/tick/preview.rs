//! What a rule would do, without storing it.

use jiff::tz::TimeZoneDatabase;

use super::{Rule, RuleForm};
use crate::error::Error;
use crate::limits::{AT_MS_MAX, PREVIEW_TICKS_MAX};

/// The ticks of a rule, and the rule in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The next ticks in ms since 1970 UTC, the earliest first.
    pub ticks: Vec<u64>,
    /// The same by the clock of the rule's zone, RFC 3339; empty without a zone other than UTC.
    pub local: Vec<String>,
    /// The rule in words.
    pub words: String,
    /// What happens on special days.
    pub notes: Vec<String>,
}

/// The first `limit` ticks of a rule after an instant.
pub fn preview(
    form: &RuleForm<'_>,
    from_ms: u64,
    limit: usize,
    zones: &TimeZoneDatabase,
) -> Result<Preview, Error> {
    if !(1..=PREVIEW_TICKS_MAX).contains(&limit) {
        return Err(Error::invalid(format!("limit is {limit}; give 1 to {PREVIEW_TICKS_MAX}")));
    }
    if from_ms > AT_MS_MAX {
        return Err(Error::invalid(format!("from is {from_ms} ms; give 0 to {AT_MS_MAX} ms")));
    }
    let rule = Rule::new(form, from_ms, zones)?;
    let ticks = std::iter::successors(rule.next(from_ms), |&tick_ms| rule.next(tick_ms));
    let ticks: Vec<u64> = ticks.take_while(|&tick_ms| tick_ms <= AT_MS_MAX).take(limit).collect();
    let local = ticks.iter().map_while(|&tick_ms| rule.local(tick_ms)).collect();
    Ok(Preview { ticks, local, words: rule.words(), notes: rule.notes(from_ms) })
}
