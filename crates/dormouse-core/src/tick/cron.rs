//! The ticks of a cron rule: next, previous, and how many.
//!
//! The set of ticks is defined by two sentences. A *beat* (all hours or all minutes are chosen)
//! ticks at each instant whose local time is chosen. A *clock* rule ticks when the local clock
//! first reaches a chosen time: so a time that is shown twice counts once, and times that are left
//! out count at the end of the gap, together and once. Times of a date that does not exist at all
//! (Samoa had no 30 December 2011) do not count.

use jiff::tz::TimeZoneDatabase;

use super::calendar::DAY_S;
use super::fields::{Fields, split};
use super::parse::parse;
use super::regime::{Regime, Regimes};
use super::zone::Zone;
use crate::error::Error;
use crate::limits::TICK_AHEAD_YEARS_MAX;

const AHEAD_S: i64 = TICK_AHEAD_YEARS_MAX * 366 * DAY_S;
/// How far `previous` looks back at a time: no zone has many transitions in it.
const BACK_S: i64 = 400 * DAY_S;

/// A cron expression in a zone.
#[derive(Clone, Debug)]
pub struct Cron {
    pub(super) fields: Fields,
    pub(super) zone: Zone,
}

impl Cron {
    /// Reads an expression of 5 or 6 fields, and finds the zone.
    pub fn new(text: &str, zone: &str, zones: &TimeZoneDatabase) -> Result<Cron, Error> {
        let fields = parse(text)?;
        Ok(Cron { fields, zone: Zone::find(zone, zones)? })
    }

    /// The name of its zone.
    pub fn zone_name(&self) -> &str {
        self.zone.name()
    }

    /// The first tick after an instant, both in ms since 1970 UTC; `None` if there is none within
    /// 45 years.
    pub fn next(&self, after_ms: u64) -> Option<u64> {
        let from = seconds(after_ms) + 1;
        let end = from.saturating_add(AHEAD_S);
        let regimes = Regimes::around(&self.zone.rules, from);
        let mut within = regimes.take_while(|regime| regime.start < end);
        within.find_map(|regime| self.first_of(&regime, from, end)).and_then(millis)
    }

    /// The last tick up to an instant, that included; `None` if there is none within 45 years.
    pub fn previous(&self, at_ms: u64) -> Option<u64> {
        let mut end = seconds(at_ms) + 1;
        let limit = end - AHEAD_S;
        while end > limit {
            let from = end - BACK_S;
            let regimes = Regimes::around(&self.zone.rules, from);
            let regimes: Vec<Regime> = regimes.take_while(|regime| regime.start < end).collect();
            let last = regimes.iter().rev().find_map(|regime| self.last_of(regime, from, end));
            if last.is_some() {
                return last.and_then(millis);
            }
            end = from;
        }
        None
    }

    /// The number of ticks after `from_ms` and up to `to_ms`. Work grows with the months between
    /// them, not with the ticks.
    pub fn count(&self, from_ms: u64, to_ms: u64) -> u64 {
        let (from, end) = (seconds(from_ms) + 1, seconds(to_ms) + 1);
        let regimes = Regimes::around(&self.zone.rules, from);
        let within = regimes.take_while(|regime| regime.start < end);
        within.map(|regime| self.count_of(&regime, from, end)).sum()
    }

    /// The first tick of a regime in `from..end`.
    fn first_of(&self, regime: &Regime, from: i64, end: i64) -> Option<i64> {
        if regime.start >= from && self.ticks_for_gap(regime) {
            return Some(regime.start);
        }
        let (from, end) = self.locals(regime, from, end);
        self.fields.first_in(from, end).map(|local| local - regime.offset)
    }

    /// The last tick of a regime in `from..end`.
    fn last_of(&self, regime: &Regime, from: i64, end: i64) -> Option<i64> {
        let (first, last) = self.locals(regime, from, end);
        let local = self.fields.last_in(first, last).map(|local| local - regime.offset);
        let gap = || {
            let is_within = (from..end).contains(&regime.start);
            (is_within && self.ticks_for_gap(regime)).then_some(regime.start)
        };
        local.or_else(gap)
    }

    /// The number of ticks of a regime in `from..end`.
    fn count_of(&self, regime: &Regime, from: i64, end: i64) -> u64 {
        let is_extra = (from..end).contains(&regime.start)
            && self.ticks_for_gap(regime)
            && !self.fields.has_local(regime.local_start());
        let (from, end) = self.locals(regime, from, end);
        self.fields.count_in(from, end) + u64::from(is_extra)
    }

    /// The local times of a regime that lie in `from..end` and may tick.
    fn locals(&self, regime: &Regime, from: i64, end: i64) -> (i64, i64) {
        let from = from.max(regime.start) + regime.offset;
        let end = end.min(regime.end) + regime.offset;
        if self.fields.is_clock() { (from.max(regime.reached), end) } else { (from, end) }
    }

    /// Whether a chosen time was left out when the clock was put forward to this regime's start.
    fn ticks_for_gap(&self, regime: &Regime) -> bool {
        self.fields.is_clock() && self.left_out(regime).is_some()
    }

    /// The first chosen local time, of a date that exists, between `reached` and a regime's start.
    pub(super) fn left_out(&self, regime: &Regime) -> Option<i64> {
        if !regime.follows_gap() {
            return None;
        }
        let (begin, end) = (regime.reached, regime.local_start());
        // The dates that exist are those on both sides of the gap.
        let (day_before, _) = split(begin - 1);
        let (day_after, _) = split(end);
        let same_day = self.fields.first_in(begin, end.min((day_before + 1) * DAY_S));
        same_day.or_else(|| self.fields.first_in(begin.max(day_after * DAY_S), end))
    }
}

/// Ticks are whole seconds, so that the part of a second behind an instant does not matter.
fn seconds(ms: u64) -> i64 {
    (ms / 1_000) as i64
}

/// `None` before 1970 and at the end of time.
fn millis(second: i64) -> Option<u64> {
    u64::try_from(second).ok()?.checked_mul(1_000)
}
