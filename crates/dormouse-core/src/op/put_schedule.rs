//! put_schedule: define a schedule, or change it. Saying the same again changes nothing.

use crate::command::{Command, Reply, operation};
use crate::error::{Code, Error};
use crate::job::BodyKind;
use crate::limits::{DELAY_MS_MAX, JITTER_MS_MAX, SCHEDULES_MAX, TOPIC_SCHEDULES_MAX};
use crate::machine::{Machine, Output, Rule};
use crate::op::check;
use crate::refusal::{schedule_conflict, schedule_never_ticks};
use crate::schedule::{
    Catchup, Definition, Overlap, Recurrence, Rest, RuleSpec, Schedule, ScheduleName, Template,
};
use crate::tick::{self, RuleForm, UTC};
use crate::time::Now;
use crate::timeline::Timeline;
use crate::topic::TopicName;
use jiff::tz::TimeZoneDatabase;

/// The action if there is a schedule of this name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScheduleConflict {
    /// It gets this definition.
    #[default]
    Replace,
    /// It stays as it is.
    Keep,
    /// Answer `conflict`.
    Reject,
}

/// Define a schedule. Exactly one of `cron`, `every_ms` and `gap_ms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutSchedule {
    /// Where its jobs are put.
    pub topic: TopicName,
    /// Its name in the topic.
    pub name: ScheduleName,
    /// A cron expression.
    pub cron: Option<String>,
    /// The zone of the cron expression; UTC unless given.
    pub zone: Option<String>,
    /// The span between two ticks.
    pub every_ms: Option<i64>,
    /// The span from the end of one job to the next tick.
    pub gap_ms: Option<i64>,
    /// The job of each tick.
    pub template: Template,
    /// A tick while an earlier job lives; skip unless given.
    pub overlap: Option<Overlap>,
    /// Ticks that passed unseen; one unless given.
    pub catchup: Option<Catchup>,
    /// A tick that is later than this is missed.
    pub late_max_ms: Option<i64>,
    /// A job is due up to so much after its tick.
    pub jitter_ms: Option<i64>,
    /// No tick before this, ms since the epoch.
    pub start_at_ms: Option<i64>,
    /// No tick after this, ms since the epoch.
    pub end_at_ms: Option<i64>,
    /// The schedule ends after so many jobs.
    pub ticks_max: Option<u64>,
    /// The action if there is a schedule of this name.
    pub on_conflict: ScheduleConflict,
    /// Only if the schedule there has this version.
    pub if_version: Option<u64>,
}

impl PutSchedule {
    /// A schedule without a rule, with every default.
    pub fn new(topic: TopicName, name: ScheduleName, template: Template) -> PutSchedule {
        PutSchedule {
            topic,
            name,
            cron: None,
            zone: None,
            every_ms: None,
            gap_ms: None,
            template,
            overlap: None,
            catchup: None,
            late_max_ms: None,
            jitter_ms: None,
            start_at_ms: None,
            end_at_ms: None,
            ticks_max: None,
            on_conflict: ScheduleConflict::Replace,
            if_version: None,
        }
    }

    /// Checks everything; gives what is to be kept.
    pub fn definition(&self, now: Now, zones: &TimeZoneDatabase) -> Result<Definition, Error> {
        let at = |field, ms: Option<i64>| ms.map(|ms| check::instant(field, ms));
        let start_at = at("start_at", self.start_at_ms).transpose()?;
        let end_at = at("end_at", self.end_at_ms).transpose()?;
        if let (Some(start_ms), Some(end_ms)) = (start_at, end_at)
            && end_ms <= start_ms
        {
            let (start, end) = (check::rfc3339(start_ms), check::rfc3339(end_ms));
            let text = format!("end_at ({end}) must be later than start_at ({start})");
            return Err(Error::invalid(text));
        }
        let form = RuleForm {
            cron: self.cron.as_deref(),
            zone: self.zone.as_deref(),
            every_ms: self.every_ms,
            gap_ms: self.gap_ms,
        };
        let spec = spec(&tick::Rule::new(&form, now.wall_ms, zones)?, &form);
        self.check_policy(&spec)?;
        let span = |field, ms: Option<i64>, max| ms.map(|ms| check::span(field, ms, 0, max));
        let jitter_ms = span("jitter", self.jitter_ms, JITTER_MS_MAX).transpose()?.unwrap_or(0);
        let late_max_ms = span("late_max", self.late_max_ms, DELAY_MS_MAX).transpose()?;
        if self.ticks_max == Some(0) {
            return Err(Error::invalid("ticks_max is 0; give at least 1, or leave it out"));
        }
        self.template.put(self.topic.clone()).check(now)?;
        let mut template = self.template.clone();
        template.headers = template.headers.filter(|headers| !headers.is_empty());
        // Text is handed out as text, however it came: it is the same definition.
        if template.body_kind == BodyKind::Bytes && std::str::from_utf8(&template.body).is_ok() {
            template.body_kind = BodyKind::Text;
        }
        Ok(Definition {
            recurrence: Recurrence { spec, jitter_ms, start_at, end_at },
            template,
            overlap: self.overlap.unwrap_or_default(),
            catchup: self.catchup.unwrap_or_default(),
            late_max_ms,
            ticks_max: self.ticks_max,
        })
    }

    fn check_policy(&self, spec: &RuleSpec) -> Result<(), Error> {
        let is_gap = matches!(spec, RuleSpec::Gap { .. });
        if is_gap && self.overlap.is_some() {
            let text = "overlap goes with cron and every, not with gap, which counts from the end \
                        of the job before: leave overlap out";
            return Err(Error::invalid(text));
        }
        let may_catch_up = matches!(self.overlap, Some(Overlap::Allow | Overlap::Wait));
        if self.catchup == Some(Catchup::All) && !may_catch_up {
            let text = "catchup all goes with overlap allow or wait: give one of them, or catchup \
                        one";
            return Err(Error::invalid(text));
        }
        Ok(())
    }

    /// What becomes of the schedule of this name, if there is one. The plan of a new or changed
    /// one is up to the caller.
    pub fn apply(
        &self,
        existing: Option<&Schedule>,
        definition: Definition,
        now: Now,
        zones: &TimeZoneDatabase,
    ) -> Result<(ScheduleOutcome, Schedule), Error> {
        let Some(existing) = existing else {
            if let Some(version) = self.if_version {
                return Err(schedule_conflict(&self.name, version, None));
            }
            return Ok((ScheduleOutcome::Created, Schedule::new(definition, now)));
        };
        match self.on_conflict {
            ScheduleConflict::Keep => {
                return Ok((ScheduleOutcome::Duplicate, existing.clone()));
            }
            ScheduleConflict::Reject => {
                let version = self.if_version.unwrap_or(0);
                return Err(schedule_conflict(&self.name, version, Some(existing.version)));
            }
            ScheduleConflict::Replace => {}
        }
        if let Some(version) = self.if_version
            && version != existing.version
        {
            return Err(schedule_conflict(&self.name, version, Some(existing.version)));
        }
        if existing.definition == definition {
            return Ok((ScheduleOutcome::Unchanged, existing.clone()));
        }
        let mut schedule = existing.clone();
        // If its rule cannot be read any more, the ticks that passed are unknown.
        schedule.redefine(definition, existing.rule(zones).ok().as_ref(), now);
        Ok((ScheduleOutcome::Replaced, schedule))
    }
}

/// The rule as it is kept: the zone by its full name.
fn spec(rule: &tick::Rule, form: &RuleForm<'_>) -> RuleSpec {
    match rule {
        tick::Rule::Cron(cron) => RuleSpec::Cron {
            text: form.cron.unwrap_or_default().to_owned(),
            zone: if form.zone.is_some() { cron.zone_name() } else { UTC }.to_owned(),
        },
        tick::Rule::Every(every) => RuleSpec::Every { span_ms: every.span_ms },
        tick::Rule::Gap(span_ms) => RuleSpec::Gap { span_ms: *span_ms },
    }
}

/// The result of defining a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleOutcome {
    /// It is new.
    Created,
    /// It has the new definition.
    Replaced,
    /// It has had this definition.
    Unchanged,
    /// It stays as it is, though its definition is another.
    Duplicate,
}

impl ScheduleOutcome {
    /// The word for it on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            ScheduleOutcome::Created => "created",
            ScheduleOutcome::Replaced => "replaced",
            ScheduleOutcome::Unchanged => "unchanged",
            ScheduleOutcome::Duplicate => "duplicate",
        }
    }
}

/// The answer to a put_schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutScheduleReply {
    /// Whether it is new, changed or as it was.
    pub outcome: ScheduleOutcome,
    /// Its version now.
    pub version: u64,
    /// Its next tick, wall ms; `None` while it waits for a job or is paused.
    pub next_at: Option<u64>,
    /// The rule in words.
    pub words: String,
    /// What happens on special days of the coming year.
    pub notes: Vec<String>,
}

impl PutScheduleReply {
    /// The answer about a schedule as it is now.
    pub fn of(outcome: ScheduleOutcome, schedule: &Schedule, rule: &tick::Rule, now: Now) -> Self {
        PutScheduleReply {
            outcome,
            version: schedule.version,
            next_at: schedule.next_at(rule, now),
            words: rule.words(),
            notes: rule.notes(now.wall_ms),
        }
    }
}

impl From<PutScheduleReply> for Reply {
    fn from(reply: PutScheduleReply) -> Reply {
        Reply::PutSchedule(Box::new(reply))
    }
}

operation! {
    PutSchedule => PutScheduleReply,
        request => Command::PutSchedule(Box::new(request)),
        Reply::PutSchedule(reply) => Ok(*reply);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn put_schedule(
        &mut self,
        now: Now,
        put: &PutSchedule,
        out: &mut Output,
    ) -> Rule<Reply> {
        let zones = self.schedules.zones.clone();
        let definition = put.definition(now, &zones)?;
        let known = self.topics.find(&put.topic);
        let entry = match known {
            Some(topic) => self.find_schedule(topic, &put.name)?,
            None => None,
        };
        let existing = entry.as_ref().map(|entry| &entry.schedule);
        let (outcome, mut schedule) = put.apply(existing, definition, now, &zones)?;
        let rule = schedule.rule(&zones)?;
        if matches!(outcome, ScheduleOutcome::Unchanged | ScheduleOutcome::Duplicate) {
            return Ok(PutScheduleReply::of(outcome, &schedule, &rule, now).into());
        }
        if let Some(full) = &self.full {
            return Err(full.clone().into());
        }
        match entry {
            Some(mut entry) => {
                let topic = known.unwrap_or_default();
                self.redefine_schedule(topic, &mut entry, schedule, now, out)?;
                schedule = entry.schedule;
            }
            None => {
                self.check_schedule_room(put)?;
                let now_ms = now.on(schedule.definition.clock());
                let rest = schedule.rest(&put.name, &rule, now_ms, false);
                if rest == Rest::Ended {
                    return Err(schedule_never_ticks(&put.name).into());
                }
                let topic = self.topic_or_birth(&put.topic, out)?;
                self.add_schedule(topic, &put.name, &schedule, rest, now, out);
            }
        }
        Ok(PutScheduleReply::of(outcome, &schedule, &rule, now).into())
    }

    fn check_schedule_room(&mut self, put: &PutSchedule) -> Result<(), Error> {
        let topic = self.topics.find(&put.topic);
        let of_topic =
            topic.and_then(|topic| self.topics.get(topic)).map_or(0, |one| one.schedules);
        let (count, max, of) = if of_topic >= TOPIC_SCHEDULES_MAX {
            (of_topic, TOPIC_SCHEDULES_MAX, format!("topic {}", put.topic))
        } else if self.schedules.count >= SCHEDULES_MAX {
            (self.schedules.count, SCHEDULES_MAX, "the server".to_owned())
        } else {
            return Ok(());
        };
        let text = format!("{of} has {count} schedules, the limit is {max}; remove some");
        Err(Error::new(Code::Full, text))
    }
}
