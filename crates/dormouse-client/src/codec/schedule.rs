//! Schedules as commands, and as they come.

use bytes::Bytes;
use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_core::job::{BodyKind, JobId};
use dormouse_core::op::{
    PutOutcome, PutReply, PutSchedule, PutScheduleReply, ScheduleChange, ScheduleConflict,
    ScheduleOutcome, ScheduleState, ScheduleView,
};
use dormouse_core::schedule::{
    Catchup, Definition, LastJob, Overlap, Recurrence, RuleSpec, Template, TickCounts,
};

use super::fields::{Fields, number, text, unexpected};
use super::text::{backoff_words, find_word};
use super::value::Value;
use super::words::{Commands, Words};

/// Writes a command on schedules; false = it is another.
pub(super) fn write(c: &mut Commands<'_>, command: &Command) -> bool {
    match command {
        Command::PutSchedule(put) => self::put(&mut c.begin("SCHEDULE"), put),
        Command::GetSchedule(get) => {
            c.begin("GETSCHEDULE").word(&get.topic).word(&get.name);
        }
        Command::Schedules(page) => {
            c.begin("SCHEDULES")
                .word(&page.topic)
                .option("STATE", page.state.map(ScheduleState::as_str))
                .option("CURSOR", page.cursor.as_ref())
                .option("LIMIT", Some(page.limit));
        }
        Command::RemoveSchedule(remove) => {
            let mut words = c.begin("UNSCHEDULE");
            words.word(&remove.topic).word(&remove.name).flag("JOBS", remove.cancel_job);
        }
        Command::ChangeSchedule(change) => {
            let mut words = c.begin(match change.change {
                ScheduleChange::Pause { .. } => "PAUSESCHEDULE",
                ScheduleChange::Resume => "RESUMESCHEDULE",
                ScheduleChange::Skip => "SKIPTICK",
                ScheduleChange::Replan => "REPLAN",
            });
            words.word(&change.topic).word(&change.name);
            if let ScheduleChange::Pause { for_ms: Some(ms) } = change.change {
                words.word(ms);
            }
        }
        Command::RunSchedule(run) => {
            c.begin("RUNSCHEDULE")
                .word(&run.topic)
                .word(&run.name)
                .option("FROM", run.ticks.map(|(from, _)| from))
                .option("TO", run.ticks.map(|(_, to)| to));
        }
        _ => return false,
    }
    true
}

fn put(words: &mut Words<'_, '_>, put: &PutSchedule) {
    let template = &put.template;
    let conflict = match put.on_conflict {
        ScheduleConflict::Replace => "replace",
        ScheduleConflict::Keep => "keep",
        ScheduleConflict::Reject => "reject",
    };
    let kind = Some(template.body_kind).filter(|kind| *kind != BodyKind::Bytes);
    words
        .word(&put.topic)
        .word(&put.name)
        .word(&template.body)
        .option("CRON", put.cron.as_ref())
        .option("ZONE", put.zone.as_ref())
        .option("EVERY", put.every_ms)
        .option("GAP", put.gap_ms)
        .option("OVERLAP", put.overlap.map(Overlap::as_str))
        .option("CATCHUP", put.catchup.map(Catchup::as_str))
        .option("LATE_MAX", put.late_max_ms)
        .option("JITTER", put.jitter_ms)
        .option("START_AT", put.start_at_ms)
        .option("END_AT", put.end_at_ms)
        .option("TICKS_MAX", put.ticks_max)
        .option("ON_CONFLICT", Some(conflict))
        .option("IF_VERSION", put.if_version)
        .option("PRIORITY", template.priority)
        .option("TTR", template.ttr_ms)
        .option("ATTEMPTS", template.attempts_max)
        .option("BACKOFF", template.backoff.as_deref().map(backoff_words))
        .option("EXPIRES_AFTER", template.expires_after_ms)
        .option("GROUP", template.group.as_ref())
        .headers(template.headers.as_ref().map(|headers| headers.as_slice()))
        .option("KIND", kind.map(BodyKind::as_str));
}

pub(super) fn put_reply(reply: &Value<'_>, frame: &Bytes) -> Result<PutScheduleReply, Error> {
    use ScheduleOutcome::{Created, Duplicate, Replaced, Unchanged};
    let fields = Fields::of(reply, frame)?;
    let code: String = fields.text("code")?;
    let outcomes = [Created, Replaced, Unchanged, Duplicate];
    let outcome = find_word(outcomes, ScheduleOutcome::as_str, &code);
    let Value::List(notes) = fields.get("notes")? else {
        return Err(unexpected("no notes", reply));
    };
    Ok(PutScheduleReply {
        outcome: outcome.ok_or_else(|| unexpected("no outcome", reply))?,
        version: fields.number("version")?,
        next_at: fields.count("next_at")?,
        words: fields.text("words")?,
        notes: notes.iter().map(text).collect::<Result<_, _>>()?,
    })
}

pub(super) fn ran(reply: &Value<'_>) -> Result<Vec<Result<PutReply, Error>>, Error> {
    let Value::List(ids) = reply else { return Err(unexpected("no ids", reply)) };
    let one = |id: &Value<'_>| {
        let id: JobId = text(id)?;
        Ok(PutReply { id, outcome: PutOutcome::Created, state: None, due_at: 0 })
    };
    Ok(ids.iter().map(one).collect())
}

pub(super) fn view(reply: &Value<'_>, frame: &Bytes) -> Result<ScheduleView, Error> {
    use ScheduleState::{Broken, Busy, Paused, Waiting};
    let fields = Fields::of(reply, frame)?;
    let optional = |name: &str| -> Result<Option<String>, Error> {
        let bytes = fields.bytes(name)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    };
    let broken = |what: &str| unexpected(what, reply);
    let spec = match (
        optional("cron")?,
        optional("zone")?,
        fields.count("every_ms")?,
        fields.count("gap_ms")?,
    ) {
        (Some(text), Some(zone), None, None) => RuleSpec::Cron { text, zone },
        (None, None, Some(span_ms), None) => RuleSpec::Every { span_ms },
        (None, None, None, Some(span_ms)) => RuleSpec::Gap { span_ms },
        _ => return Err(broken("not one rule")),
    };
    let word = |name: &str| fields.text::<String>(name);
    let state = find_word([Waiting, Paused, Busy, Broken], ScheduleState::as_str, &word("state")?);
    let overlap = find_word(Overlap::ALL, Overlap::as_str, &word("overlap")?);
    let catchup = find_word(Catchup::ALL, Catchup::as_str, &word("catchup")?);
    let last = match fields.get("last_id")? {
        Value::Null => None,
        id => Some(LastJob {
            id: text(id)?,
            tick_ms: fields.number("last_tick")?,
            put_at: fields.number("last_put_at")?,
        }),
    };
    let Value::List(next) = fields.get("next")? else { return Err(broken("no next ticks")) };
    let template = template(&fields)?;
    Ok(ScheduleView {
        topic: fields.text("topic")?,
        name: fields.text("name")?,
        definition: Definition {
            recurrence: Recurrence {
                spec,
                jitter_ms: fields.number("jitter_ms")?,
                start_at: fields.count("start_at")?,
                end_at: fields.count("end_at")?,
            },
            template,
            overlap: overlap.ok_or_else(|| broken("no overlap"))?,
            catchup: catchup.ok_or_else(|| broken("no catchup"))?,
            late_max_ms: fields.count("late_max_ms")?,
            ticks_max: fields.count("ticks_max")?,
        },
        version: fields.number("version")?,
        state: state.ok_or_else(|| broken("no state"))?,
        created_at: fields.number("created_at")?,
        anchor_at: 0,
        next: next.iter().map(number).collect::<Result<_, _>>()?,
        last,
        counts: TickCounts {
            given: fields.number("given")?,
            missed: fields.number("missed")?,
            overlapped: fields.number("overlapped")?,
            skipped: fields.number("skipped")?,
        },
        paused_until: fields.count("paused_until")?,
        words: fields.text("words")?,
    })
}

fn template(fields: &Fields<'_, '_>) -> Result<Template, Error> {
    Ok(Template {
        body: fields.bytes("body")?.unwrap_or_default(),
        body_kind: fields.kind()?,
        headers: fields.headers()?,
        priority: fields.count("priority")?,
        ttr_ms: fields.count("ttr_ms")?,
        attempts_max: fields.count("attempts_max")?,
        backoff: fields.backoff()?,
        expires_after_ms: fields.count("expires_after_ms")?,
        group: fields.bytes("group")?,
    })
}
