//! preview: the next ticks of a rule that repeats. Nothing is stored, and no backend is asked.

use dormouse_core::error::Error;
use dormouse_core::limits::PREVIEW_TICKS_DEFAULT;
use dormouse_core::op::check;
use dormouse_core::tick::{self, Preview, RuleForm};

use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, unknown};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;
use crate::units::wall_ms;

const OPTIONS: [&str; 6] = ["CRON", "ZONE", "EVERY", "GAP", "FROM", "LIMIT"];

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    // It shows nothing of anybody: whoever may look at some job may ask.
    conn.grant().check_somewhere(Verb::Get)?;
    let mut rule = RuleForm::default();
    let (mut from, mut limit) = (None, PREVIEW_TICKS_DEFAULT);
    while let Some(word) = args.next() {
        if is(word, "CRON") {
            rule.cron = Some(args.text("CRON")?);
        } else if is(word, "ZONE") {
            rule.zone = Some(args.text("ZONE")?);
        } else if is(word, "EVERY") {
            rule.every_ms = Some(args.span("EVERY")?);
        } else if is(word, "GAP") {
            rule.gap_ms = Some(args.span("GAP")?);
        } else if is(word, "FROM") {
            from = Some(check::instant("from", args.instant("FROM")?)?);
        } else if is(word, "LIMIT") {
            limit = args.number::<u32>("LIMIT")? as usize;
        } else {
            return Err(unknown(word, &OPTIONS));
        }
    }
    // Up to a millisecond of work: the last of its turn, it lets other connections in between.
    turn.end();
    let preview = tick::preview(&rule, from.unwrap_or_else(wall_ms), limit, jiff::tz::db())?;
    write(&mut conn.reply(turn), &preview);
    Ok(())
}

fn write(out: &mut Out<'_>, preview: &Preview) {
    out.map(4);
    out.name("ticks");
    out.list(preview.ticks.len());
    preview.ticks.iter().for_each(|&tick_ms| out.number(tick_ms));
    out.name("local");
    out.list(preview.local.len());
    preview.local.iter().for_each(|local| out.string(local.as_bytes()));
    out.name("words");
    out.string(preview.words.as_bytes());
    out.name("notes");
    out.list(preview.notes.len());
    preview.notes.iter().for_each(|note| out.string(note.as_bytes()));
}
