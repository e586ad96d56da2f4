//! Rules that repeat: their ticks and their words.

use std::time::{Duration, SystemTime};

use dormouse_core::error::Error;
use dormouse_core::op::PutSchedule;
use dormouse_core::tick::{self, Preview, RuleForm};

use crate::time::{span_ms, wall_ms};

/// A rule that repeats: by a cron expression, at equal distances, or after a gap.
///
/// ```
/// use dormouse::Rule;
/// use std::time::{Duration, UNIX_EPOCH};
///
/// let from = UNIX_EPOCH + Duration::from_millis(1_804_507_200_000); // 8 March 2027
/// let rule = Rule::cron("30 2 * * *").zone("America/New_York");
/// let preview = rule.preview(from, 6)?;
/// assert_eq!(preview.words, "at 02:30 every day, America/New_York");
/// assert_eq!(preview.notes[0], "2027-03-14 has no 02:30: ticks at 03:00");
/// assert_eq!(preview.ticks[5] % 86_400_000, 7 * 3_600_000); // 03:00 there is 07:00 UTC
///
/// let error = Rule::cron("0 0 30 2 *").preview(from, 1).unwrap_err();
/// assert!(error.text.contains("never comes"));
/// # Ok::<(), dormouse::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    kind: Kind,
    zone: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Cron(String),
    Every(Duration),
    Gap(Duration),
}

impl Rule {
    /// By a cron expression of 5 fields, or of 6 with seconds first, in UTC.
    pub fn cron(expression: impl Into<String>) -> Rule {
        Rule { kind: Kind::Cron(expression.into()), zone: None }
    }

    /// At equal distances.
    pub fn every(span: Duration) -> Rule {
        Rule { kind: Kind::Every(span), zone: None }
    }

    /// This long after the job before has ended.
    pub fn gap(span: Duration) -> Rule {
        Rule { kind: Kind::Gap(span), zone: None }
    }

    /// The zone of the cron expression: an IANA name, or an offset like `+05:30`.
    pub fn zone(mut self, name: impl Into<String>) -> Rule {
        self.zone = Some(name.into());
        self
    }

    /// Makes this the rule of a schedule.
    pub(crate) fn fill(self, put: &mut PutSchedule) {
        match self.kind {
            Kind::Cron(expression) => put.cron = Some(expression),
            Kind::Every(span) => put.every_ms = Some(span_ms(span)),
            Kind::Gap(span) => put.gap_ms = Some(span_ms(span)),
        }
        put.zone = self.zone;
    }

    /// The rule in words, its first `limit` ticks after an instant, at most 1,000, and notes about
    /// special days. Nothing is stored. `invalid` if the rule cannot be understood or never comes.
    pub fn preview(&self, from: SystemTime, limit: usize) -> Result<Preview, Error> {
        let mut form = RuleForm { zone: self.zone.as_deref(), ..RuleForm::default() };
        match &self.kind {
            Kind::Cron(expression) => form.cron = Some(expression),
            Kind::Every(span) => form.every_ms = Some(span_ms(*span)),
            Kind::Gap(span) => form.gap_ms = Some(span_ms(*span)),
        }
        // No tick is before 1970.
        let from_ms = u64::try_from(wall_ms(from)).unwrap_or(0);
        tick::preview(&form, from_ms, limit, jiff::tz::db())
    }
}
