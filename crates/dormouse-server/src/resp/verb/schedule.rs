//! Schedules as they are: one, a page of them, and the changes that answer with one.

use dormouse_core::error::Error;
use dormouse_core::op::{
    ChangeSchedule, GetSchedule, RemoveSchedule, RunSchedule, ScheduleChange, ScheduleState,
    ScheduleView, Schedules, SchedulesPage,
};
use dormouse_core::schedule::{RuleSpec, ScheduleName};
use dormouse_core::topic::TopicName;

use super::ReplyKind;
use super::job::{write_backoff, write_headers, write_optional};
use super::list::LIMIT_DEFAULT;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, shown, unknown};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;

fn named(
    conn: &mut Conn,
    verb: Verb,
    args: &mut Args<'_>,
) -> Result<(TopicName, ScheduleName), Error> {
    let topic = conn.topic(verb, args.must("topic")?)?;
    Ok((topic, ScheduleName::new(args.text("name")?)?))
}

pub(in crate::resp) fn get(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let (topic, name) = named(conn, Verb::Get, args)?;
    conn.send_for_jobs(turn, 1, GetSchedule { topic, name }, None, ReplyKind::Schedule);
    Ok(())
}

pub(in crate::resp) fn list(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let topic = conn.topic(Verb::List, args.must("topic")?)?;
    let mut page = Schedules { topic, state: None, cursor: None, limit: LIMIT_DEFAULT };
    while let Some(word) = args.next() {
        if is(word, "STATE") {
            page.state = Some(state(args.must("STATE")?)?);
        } else if is(word, "CURSOR") {
            page.cursor = Some(args.text("CURSOR")?.to_owned());
        } else if is(word, "LIMIT") {
            page.limit = args.number("LIMIT")?;
        } else {
            return Err(unknown(word, &["STATE", "CURSOR", "LIMIT"]));
        }
    }
    conn.send_last(turn, page, ReplyKind::Schedules);
    Ok(())
}

fn state(word: &[u8]) -> Result<ScheduleState, Error> {
    use ScheduleState::{Broken, Busy, Paused, Waiting};
    let mut states = [Waiting, Paused, Busy, Broken].into_iter();
    states.find(|state| is(word, state.as_str())).ok_or_else(|| {
        let shown = shown(word);
        Error::invalid(format!("STATE is {shown}; give waiting, paused, busy or broken"))
    })
}

pub(in crate::resp) fn remove(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let (topic, name) = named(conn, Verb::Schedule, args)?;
    let cancel_job = args.take("JOBS");
    args.finish(&["JOBS"])?;
    if cancel_job {
        conn.grant().check(Verb::Cancel, topic.as_str())?;
    }
    conn.send(turn, RemoveSchedule { topic, name, cancel_job }, None, ReplyKind::Done);
    Ok(())
}

pub(in crate::resp) fn pause(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let (topic, name) = named(conn, Verb::Schedule, args)?;
    let for_ms = if args.len() > 0 { Some(args.span("span")?) } else { None };
    let change = ScheduleChange::Pause { for_ms };
    let change = ChangeSchedule { topic, name, change };
    conn.send_for_jobs(turn, 1, change, None, ReplyKind::Schedule);
    Ok(())
}

fn change(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
    change: ScheduleChange,
) -> Result<(), Error> {
    let (topic, name) = named(conn, Verb::Schedule, args)?;
    let change = ChangeSchedule { topic, name, change };
    conn.send_for_jobs(turn, 1, change, None, ReplyKind::Schedule);
    Ok(())
}

pub(in crate::resp) fn resume(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    change(conn, args, turn, ScheduleChange::Resume)
}

pub(in crate::resp) fn skip(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    change(conn, args, turn, ScheduleChange::Skip)
}

pub(in crate::resp) fn replan(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    change(conn, args, turn, ScheduleChange::Replan)
}

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let (topic, name) = named(conn, Verb::Schedule, args)?;
    let ticks = if args.take("FROM") {
        let from_ms = args.instant("FROM")?;
        if !args.take("TO") {
            return Err(Error::invalid("FROM goes with TO: give both, or neither"));
        }
        Some((from_ms, args.instant("TO")?))
    } else {
        None
    };
    args.finish(&["FROM", "TO"])?;
    // Jobs as large as its body, up to a thousand.
    conn.send_last(turn, RunSchedule { topic, name, ticks }, ReplyKind::RanSchedule);
    Ok(())
}

/// The cursor of the next page, or null if this is the last; then the schedules.
pub(super) fn write_page(out: &mut Out<'_>, page: &SchedulesPage) {
    out.list(2);
    match &page.cursor {
        Some(cursor) => out.string(cursor.as_bytes()),
        None => out.null(),
    }
    out.list(page.schedules.len());
    page.schedules.iter().for_each(|view| write(out, view));
}

/// Every schedule has the same fields; what it lacks is null.
pub(super) fn write(out: &mut Out<'_>, view: &ScheduleView) {
    let definition = &view.definition;
    let (recurrence, template) = (&definition.recurrence, &definition.template);
    let (mut cron, mut zone, mut every_ms, mut gap_ms) = (None, None, None, None);
    match &recurrence.spec {
        RuleSpec::Cron { text, zone: name } => (cron, zone) = (Some(text), Some(name)),
        RuleSpec::Every { span_ms } => every_ms = Some(*span_ms),
        RuleSpec::Gap { span_ms } => gap_ms = Some(*span_ms),
    }
    out.map(35);
    for (name, text) in [
        ("topic", Some(view.topic.as_str())),
        ("name", Some(view.name.as_str())),
        ("state", Some(view.state.as_str())),
        ("cron", cron.map(String::as_str)),
        ("zone", zone.map(String::as_str)),
        ("overlap", Some(definition.overlap.as_str())),
        ("catchup", Some(definition.catchup.as_str())),
        ("words", Some(view.words.as_str())),
    ] {
        out.name(name);
        match text {
            Some(text) => out.string(text.as_bytes()),
            None => out.null(),
        }
    }
    let counts = view.counts;
    for (name, number) in [
        ("version", Some(view.version)),
        ("every_ms", every_ms),
        ("gap_ms", gap_ms),
        ("late_max_ms", definition.late_max_ms),
        ("jitter_ms", Some(recurrence.jitter_ms)),
        ("start_at", recurrence.start_at),
        ("end_at", recurrence.end_at),
        ("ticks_max", definition.ticks_max),
        ("created_at", Some(view.created_at)),
        ("paused_until", view.paused_until),
        ("last_id", view.last.map(|last| last.id.0)),
        ("last_tick", view.last.map(|last| last.tick_ms)),
        ("last_put_at", view.last.map(|last| last.put_at)),
        ("given", Some(counts.given)),
        ("missed", Some(counts.missed)),
        ("overlapped", Some(counts.overlapped)),
        ("skipped", Some(counts.skipped)),
        ("priority", template.priority.map(u64::from)),
        ("ttr_ms", template.ttr_ms.map(i64::unsigned_abs)),
        ("attempts_max", template.attempts_max.map(u64::from)),
        ("expires_after_ms", template.expires_after_ms.map(i64::unsigned_abs)),
    ] {
        out.name(name);
        match number {
            // An id may be larger than a number of RESP.
            Some(number) if name == "last_id" => out.digits(number),
            Some(number) => out.number(number),
            None => out.null(),
        }
    }
    out.name("next");
    out.list(view.next.len());
    view.next.iter().for_each(|&tick_ms| out.number(tick_ms));
    out.name("backoff");
    write_backoff(out, template.backoff.as_deref());
    out.name("headers");
    write_headers(out, &template.headers);
    out.name("group");
    write_optional(out, template.group.as_ref());
    out.name("kind");
    out.string(template.body_kind.as_str().as_bytes());
    out.name("body");
    out.string(&template.body);
}

/// The ids of the jobs.
pub(super) fn write_ran(
    out: &mut Out<'_>,
    replies: &[Result<dormouse_core::op::PutReply, Error>],
) -> Result<(), Error> {
    // Ticks that are refused have one reason: the topic is full.
    if let Some(error) = replies.iter().find_map(|reply| reply.as_ref().err()) {
        return Err(error.clone());
    }
    out.list(replies.len());
    replies.iter().flatten().for_each(|reply| out.digits(reply.id.0));
    Ok(())
}
