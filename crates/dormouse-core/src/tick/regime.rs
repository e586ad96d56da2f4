//! The history of a zone as regimes: stretches of time with one offset from UTC.
//!
//! Within a regime local time is instant + offset, so searching is arithmetic. All that is special
//! happens where one regime follows another, and is told by `reached`, the local time that the
//! clock had shown before: a gap if the regime begins beyond it, an overlap if it begins below it.
//!
//! Of a zone this asks for the offset at an instant and for the transitions after one, nothing
//! else: what jiff 0.2.39 says of a local time, or of the transitions before an instant, is wrong
//! at some of them (America/Nuuk 2023, America/Metlakatla 2019).

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneFollowingTransitions};

use super::calendar::DAY_S;

/// A local time can be shown again only within this time: offsets are between -12 and +14 hours.
const OVERLAP_S: i64 = 2 * DAY_S;

/// A stretch of time with one offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Regime {
    /// Its first instant, in seconds since 1970 UTC.
    pub(super) start: i64,
    /// The first instant behind it.
    pub(super) end: i64,
    /// Local time less UTC, in seconds.
    pub(super) offset: i64,
    /// The first local time that no regime before has shown, nor any later one.
    pub(super) reached: i64,
}

impl Regime {
    /// The local time at its start.
    pub(super) fn local_start(&self) -> i64 {
        self.start + self.offset
    }

    /// Whether the clock was put forward at its start: local times from `reached` on are missing.
    pub(super) fn follows_gap(&self) -> bool {
        self.reached < self.local_start()
    }
}

/// The regimes from a little before an instant on. The first one begins there, not where its offset
/// came into force: it ends before the instant, or follows neither gap nor overlap that matters.
pub(super) struct Regimes<'z> {
    zone: &'z TimeZone,
    transitions: TimeZoneFollowingTransitions<'z>,
    /// Start and `reached` of the next regime; `None` behind the last.
    next: Option<(i64, i64)>,
}

impl<'z> Regimes<'z> {
    pub(super) fn around(zone: &'z TimeZone, second: i64) -> Regimes<'z> {
        let start = second - OVERLAP_S;
        let transitions = zone.following(stamp(start));
        Regimes { zone, transitions, next: Some((start, i64::MIN)) }
    }
}

impl Iterator for Regimes<'_> {
    type Item = Regime;

    fn next(&mut self) -> Option<Regime> {
        let (start, reached) = self.next?;
        let offset = i64::from(self.zone.to_offset(stamp(start)).seconds());
        let reached = if reached == i64::MIN { start + offset } else { reached };
        let transition = self.transitions.next().map(|it| it.timestamp().as_second());
        self.next = transition.map(|end| (end, reached.max(end + offset)));
        Some(Regime { start, end: transition.unwrap_or(i64::MAX), offset, reached })
    }
}

/// An instant; one beyond the calendar of jiff, which ends with the year 9999, becomes its last.
fn stamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
}
