//! reserve: take jobs that are due, or wait for them.

use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_core::limits::RESERVE_TOPICS_MAX;
use dormouse_core::op::{LeasedJob, Reserve};

use super::{ReplyKind, job};
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let first = conn.topic(Verb::Reserve, args.must("topic")?)?;
    let mut reserve =
        Reserve { topics: vec![first], max: 1, wait_ms: 0, ttr_ms: None, session: None };
    let mut full = false;
    while let Some(word) = args.next() {
        if is(word, "MAX") {
            reserve.max = args.number("MAX")?;
        } else if is(word, "WAIT") {
            reserve.wait_ms = args.span("WAIT")?;
        } else if is(word, "TTR") {
            reserve.ttr_ms = Some(args.span("TTR")?);
        } else if is(word, "FULL") {
            full = true;
        } else if reserve.topics.len() <= RESERVE_TOPICS_MAX {
            reserve.topics.push(conn.topic(Verb::Reserve, word)?);
        }
    }
    // An invalid request is refused now, not when its turn is sent.
    reserve.check()?;
    for topic in &reserve.topics {
        conn.check_ttr("TTR", reserve.ttr_ms, Some(topic.as_str()))?;
    }
    let (jobs, waits) = (reserve.max, reserve.wait_ms > 0);
    let command = Command::Reserve(reserve);
    if waits {
        conn.send_last(turn, command, ReplyKind::Jobs { full });
    } else {
        conn.send_for_jobs(turn, jobs, command, None, ReplyKind::Jobs { full });
    }
    Ok(())
}

/// A list of jobs.
pub(super) fn write(out: &mut Out<'_>, jobs: &[LeasedJob], full: bool) {
    out.list(jobs.len());
    for leased in jobs {
        if full {
            job::write_leased(out, leased);
        } else {
            write_short(out, leased);
        }
    }
}

/// The fields that a worker needs. New ones come last: clients know them by their position.
fn write_short(out: &mut Out<'_>, job: &LeasedJob) {
    out.list(7);
    out.string(job.topic.as_str().as_bytes());
    out.digits(job.id.0);
    out.token(job.token);
    out.number(u64::from(job.attempt));
    out.number(job.due_at);
    out.string(&job.body);
    out.number(job.ttr_ms);
}
