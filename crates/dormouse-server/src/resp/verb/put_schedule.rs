//! put_schedule: define a schedule, or change it.

use std::sync::Arc;

use dormouse_core::error::Error;
use dormouse_core::op::{PutSchedule, PutScheduleReply, ScheduleConflict};
use dormouse_core::schedule::{Catchup, Overlap, ScheduleName, Template};

use super::ReplyKind;
use super::put::{Headers, kind};
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, shown, unknown};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;

const OPTIONS: &[&str] = &[
    "CRON",
    "ZONE",
    "EVERY",
    "GAP",
    "OVERLAP",
    "CATCHUP",
    "LATE_MAX",
    "JITTER",
    "START_AT",
    "END_AT",
    "TICKS_MAX",
    "ON_CONFLICT",
    "IF_VERSION",
    "PRIORITY",
    "TTR",
    "ATTEMPTS",
    "BACKOFF",
    "EXPIRES_AFTER",
    "GROUP",
    "HEADER",
    "KIND",
];

const CONFLICTS: [(&str, ScheduleConflict); 3] = [
    ("replace", ScheduleConflict::Replace),
    ("keep", ScheduleConflict::Keep),
    ("reject", ScheduleConflict::Reject),
];

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let topic = conn.topic(Verb::Schedule, args.must("topic")?)?;
    let name = ScheduleName::new(args.text("name")?)?;
    let template = Template { body: args.bytes("body")?, ..Template::default() };
    let mut put = PutSchedule::new(topic, name, template);
    let mut headers = Headers::default();
    while let Some(word) = args.next() {
        if !read_rule(&mut put, word, args)? && !read_policy(&mut put, word, args)? {
            read_template(&mut put.template, &mut headers, word, args)?;
        }
    }
    put.template.headers = headers.into_all().map(Arc::new);
    conn.check_ttr("TTR", put.template.ttr_ms, Some(put.topic.as_str()))?;
    conn.send_for_jobs(turn, 1, put, None, ReplyKind::PutSchedule);
    Ok(())
}

/// Reads an option of the rule; `false` = it is another.
fn read_rule(put: &mut PutSchedule, word: &[u8], args: &mut Args<'_>) -> Result<bool, Error> {
    if is(word, "CRON") {
        put.cron = Some(args.text("CRON")?.to_owned());
    } else if is(word, "ZONE") {
        put.zone = Some(args.text("ZONE")?.to_owned());
    } else if is(word, "EVERY") {
        put.every_ms = Some(args.span("EVERY")?);
    } else if is(word, "GAP") {
        put.gap_ms = Some(args.span("GAP")?);
    } else if is(word, "JITTER") {
        put.jitter_ms = Some(args.span("JITTER")?);
    } else if is(word, "START_AT") {
        put.start_at_ms = Some(args.instant("START_AT")?);
    } else if is(word, "END_AT") {
        put.end_at_ms = Some(args.instant("END_AT")?);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Reads an option of what happens to ticks; `false` = it is another.
fn read_policy(put: &mut PutSchedule, word: &[u8], args: &mut Args<'_>) -> Result<bool, Error> {
    if is(word, "OVERLAP") {
        let modes = Overlap::ALL.map(|overlap| (overlap.as_str(), overlap));
        put.overlap = Some(mode("OVERLAP", &modes, args)?);
    } else if is(word, "CATCHUP") {
        let modes = Catchup::ALL.map(|catchup| (catchup.as_str(), catchup));
        put.catchup = Some(mode("CATCHUP", &modes, args)?);
    } else if is(word, "LATE_MAX") {
        put.late_max_ms = Some(args.span("LATE_MAX")?);
    } else if is(word, "TICKS_MAX") {
        put.ticks_max = Some(args.number("TICKS_MAX")?);
    } else if is(word, "ON_CONFLICT") {
        put.on_conflict = mode("ON_CONFLICT", &CONFLICTS, args)?;
    } else if is(word, "IF_VERSION") {
        put.if_version = Some(args.number("IF_VERSION")?);
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn read_template<'a>(
    template: &mut Template,
    headers: &mut Headers<'a>,
    word: &[u8],
    args: &mut Args<'a>,
) -> Result<(), Error> {
    if is(word, "PRIORITY") {
        template.priority = Some(args.number("PRIORITY")?);
    } else if is(word, "TTR") {
        template.ttr_ms = Some(args.span("TTR")?);
    } else if is(word, "ATTEMPTS") {
        template.attempts_max = Some(args.number("ATTEMPTS")?);
    } else if is(word, "BACKOFF") {
        template.backoff = Some(args.backoff()?);
    } else if is(word, "EXPIRES_AFTER") {
        template.expires_after_ms = Some(args.span("EXPIRES_AFTER")?);
    } else if is(word, "GROUP") {
        template.group = Some(args.bytes("GROUP")?);
    } else if is(word, "HEADER") {
        let name = args.text("HEADER")?;
        headers.add(name, args.text("the value of a HEADER")?)?;
    } else if is(word, "KIND") {
        template.body_kind = kind(args.must("KIND")?)?;
    } else {
        return Err(unknown(word, OPTIONS));
    }
    Ok(())
}

/// One of the words that an option takes.
fn mode<T: Copy>(
    option: &str,
    modes: &[(&'static str, T)],
    args: &mut Args<'_>,
) -> Result<T, Error> {
    let word = args.must(option)?;
    let known = modes.iter().find(|(mode, _)| is(word, mode)).map(|(_, mode)| *mode);
    known.ok_or_else(|| {
        let words: Vec<&str> = modes.iter().map(|(mode, _)| *mode).collect();
        let (shown, words) = (shown(word), words.join(", "));
        Error::invalid(format!("{option} is {shown}; give one of {words}"))
    })
}

/// What became of the schedule, and its rule in words.
pub(super) fn write(out: &mut Out<'_>, reply: &PutScheduleReply) {
    out.map(5);
    out.name("code");
    out.string(reply.outcome.as_str().as_bytes());
    out.name("version");
    out.number(reply.version);
    out.name("next_at");
    match reply.next_at {
        Some(at) => out.number(at),
        None => out.null(),
    }
    out.name("words");
    out.string(reply.words.as_bytes());
    out.name("notes");
    out.list(reply.notes.len());
    reply.notes.iter().for_each(|note| out.string(note.as_bytes()));
}
