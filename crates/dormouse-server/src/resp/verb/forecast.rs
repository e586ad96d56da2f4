//! forecast: jobs coming due per step of time.

use dormouse_core::error::Error;
use dormouse_core::limits::AT_MS_MAX;
use dormouse_core::op::Forecast;
use dormouse_core::op::check;

use super::ReplyKind;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, unknown};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;
use crate::units::wall_ms;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let topic = conn.topic(Verb::Forecast, args.must("topic")?)?;
    let (mut from, mut to, mut step_ms) = (None, None, HOUR_MS);
    while let Some(word) = args.next() {
        if is(word, "FROM") {
            from = Some(check::instant("from", args.instant("FROM")?)?);
        } else if is(word, "TO") {
            to = Some(check::instant("to", args.instant("TO")?)?);
        } else if is(word, "STEP") {
            step_ms = check::span("step", args.span("STEP")?, 0, AT_MS_MAX)?;
        } else {
            return Err(unknown(word, &["FROM", "TO", "STEP"]));
        }
    }
    let from_ms = from.unwrap_or_else(wall_ms);
    let to_ms = to.unwrap_or(from_ms.saturating_add(DAY_MS));
    let asked = Forecast { topic, from_ms, to_ms, step_ms };
    let kind = ReplyKind::Forecast(Box::new(asked.clone()));
    // It may read all jobs of the topic: the last of its turn, it lets other connections in
    // between.
    conn.send_last(turn, asked, kind);
    Ok(())
}

/// One number per step; the last step may be shorter.
pub(super) fn write(out: &mut Out<'_>, asked: &Forecast, counts: &[u64]) {
    out.map(4);
    for (name, value) in [("from", asked.from_ms), ("to", asked.to_ms), ("step_ms", asked.step_ms)]
    {
        out.name(name);
        out.number(value);
    }
    out.name("counts");
    out.list(counts.len());
    counts.iter().for_each(|&count| out.number(count));
}
