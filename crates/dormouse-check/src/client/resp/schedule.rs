//! Schedules as commands, and as they come.

use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_core::job::{BodyKind, JobId};
use dormouse_core::op::{
    PutOutcome, PutReply, PutSchedule, PutScheduleReply, ScheduleChange, ScheduleConflict,
    ScheduleOutcome, ScheduleState, ScheduleView,
};
use dormouse_core::schedule::{
    Catchup, Definition, LastJob, Overlap, Recurrence, RuleSpec, ScheduleName, Template, TickCounts,
};
use dormouse_core::topic::TopicName;

use super::ask::Words;
use super::fields::{Fields, number, text, unexpected};
use super::raw::Reply;
use crate::client::words::{backoff_words, find_word};

/// The words of a command on schedules; `None` = it is another.
pub(super) fn words(command: &Command) -> Option<Words> {
    let named = |verb: &str, topic: &TopicName, name: &ScheduleName| {
        Words::new(verb).word(topic).word(name)
    };
    Some(match command {
        Command::PutSchedule(put) => self::put(put),
        Command::GetSchedule(get) => named("GETSCHEDULE", &get.topic, &get.name),
        Command::Schedules(page) => Words::new("SCHEDULES")
            .word(&page.topic)
            .option("STATE", page.state.map(ScheduleState::as_str))
            .option("CURSOR", page.cursor.as_ref())
            .option("LIMIT", Some(page.limit)),
        Command::RemoveSchedule(remove) => {
            named("UNSCHEDULE", &remove.topic, &remove.name).flag("JOBS", remove.cancel_job)
        }
        Command::ChangeSchedule(change) => {
            let verb = match change.change {
                ScheduleChange::Pause { .. } => "PAUSESCHEDULE",
                ScheduleChange::Resume => "RESUMESCHEDULE",
                ScheduleChange::Skip => "SKIPTICK",
                ScheduleChange::Replan => "REPLAN",
            };
            let words = named(verb, &change.topic, &change.name);
            match change.change {
                ScheduleChange::Pause { for_ms: Some(ms) } => words.word(ms),
                _ => words,
            }
        }
        Command::RunSchedule(run) => named("RUNSCHEDULE", &run.topic, &run.name)
            .option("FROM", run.ticks.map(|(from, _)| from))
            .option("TO", run.ticks.map(|(_, to)| to)),
        _ => return None,
    })
}

fn put(put: &PutSchedule) -> Words {
    let template = &put.template;
    let conflict = match put.on_conflict {
        ScheduleConflict::Replace => "replace",
        ScheduleConflict::Keep => "keep",
        ScheduleConflict::Reject => "reject",
    };
    let words = Words::new("SCHEDULE")
        .word(&put.topic)
        .word(&put.name)
        .bytes(&template.body)
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
        .option("BACKOFF", template.backoff.as_deref().map(backoff_words));
    let headers = template.headers.iter().flat_map(|headers| headers.iter());
    headers.fold(words, |words, (name, value)| words.word("HEADER").word(name).word(value))
}

pub(super) fn put_reply(reply: &Reply) -> Result<PutScheduleReply, Error> {
    use ScheduleOutcome::{Created, Duplicate, Replaced, Unchanged};
    let fields = Fields::of(reply)?;
    let code: String = fields.text("code")?;
    let outcomes = [Created, Replaced, Unchanged, Duplicate];
    let outcome = find_word(outcomes, ScheduleOutcome::as_str, &code);
    let Reply::List(notes) = fields.get("notes")? else {
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

pub(super) fn ran(reply: &Reply) -> Result<Vec<Result<PutReply, Error>>, Error> {
    let Reply::List(ids) = reply else { return Err(unexpected("no ids", reply)) };
    let one = |id: &Reply| {
        let id: JobId = text(id)?;
        Ok(PutReply { id, outcome: PutOutcome::Created, state: None, due_at: 0 })
    };
    Ok(ids.iter().map(one).collect())
}

pub(super) fn view(reply: &Reply) -> Result<ScheduleView, Error> {
    use ScheduleState::{Broken, Busy, Paused, Waiting};
    let fields = Fields::of(reply)?;
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
        Reply::Nil => None,
        id => Some(LastJob {
            id: text(id)?,
            tick_ms: fields.number("last_tick")?,
            put_at: fields.number("last_put_at")?,
        }),
    };
    let Reply::List(next) = fields.get("next")? else { return Err(broken("no next ticks")) };
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

fn template(fields: &Fields<'_>) -> Result<Template, Error> {
    Ok(Template {
        body: fields.bytes("body")?.unwrap_or_default(),
        body_kind: BodyKind::Bytes,
        headers: fields.headers()?,
        priority: fields.count("priority")?,
        ttr_ms: fields.count("ttr_ms")?,
        attempts_max: fields.count("attempts_max")?,
        backoff: fields.backoff()?,
    })
}
