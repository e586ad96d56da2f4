//! One file per verb: what it reads, what it asks, what it answers.

pub(super) mod ack;
pub(super) mod cancel;
mod change;
pub(super) mod extend;
pub(super) mod forecast;
pub(super) mod get;
mod job;
pub(super) mod kick;
pub(super) mod kill;
pub(super) mod list;
pub(super) mod lock;
mod many;
pub(super) mod nack;
pub(super) mod pause;
pub(super) mod peek;
pub(super) mod purge;
pub(super) mod put;
pub(super) mod release;
pub(super) mod reschedule;
pub(super) mod reserve;
pub(super) mod reserve_id;
pub(super) mod resume;
pub(super) mod revive;
pub(super) mod stats;
pub(super) mod topics;

use bytes::BytesMut;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::op::Forecast;

use super::conn::{Conn, PendingReply};
use super::encode::Out;
use super::fault;
use crate::client::unexpected;
use crate::pipeline::{Outcome, Step};
use crate::walk::Walk;
use many::Many;

/// What a verb needs to know when its outcome is there.
pub(super) enum ReplyKind {
    /// A put; was it one with a key?
    Put { keyed: bool },
    /// One lease or job, which has ended.
    Ended,
    /// Several.
    AllEnded,
    /// A lease that goes on.
    Extended,
    /// A job that has gone.
    Cancelled,
    /// A job that was moved or revived.
    Changed,
    /// Jobs in the client's hands; all that is known of them?
    Jobs { full: bool },
    /// A job, or none, if it is not there.
    View,
    /// A job, or none, if there is none.
    Peeked,
    /// A page of jobs; with their bodies?
    Page { bodies: bool },
    /// A page of topics.
    Topics(Box<Walk>),
    /// Counts.
    Stats { of_all: bool },
    /// Jobs per step.
    Forecast(Box<Forecast>),
    /// How many.
    Count,
    /// How many, one portion after the other.
    Many(Box<Many>),
    /// Nothing more to say.
    Done,
    /// A lock that is held.
    Held,
    /// A lock that was given back.
    Unlocked,
}

/// What is asked next, if not all is done; or why nothing is.
type Next = Result<Option<(Command, ReplyKind)>, Error>;

/// Writes what came of a command.
pub(super) fn write(
    conn: &mut Conn,
    then: PendingReply,
    outcome: Outcome,
    bytes: &mut BytesMut,
) -> Option<Step<PendingReply>> {
    let PendingReply { word, version, kind } = then;
    let mut out = Out::new(bytes, version);
    let written: Next = match (kind, outcome) {
        (ReplyKind::Put { keyed }, Outcome::Put(put)) => {
            put.map(|put| put::write(&mut out, put, keyed)).map(|()| None)
        }
        (ReplyKind::Ended, Outcome::Acked(ended)) => {
            ended.map(|ended| ack::write(&mut out, ended)).map(|()| None)
        }
        (ReplyKind::Many(many), Outcome::Answer(answer)) => many.go_on(&mut out, answer),
        (ReplyKind::Topics(walk), Outcome::Answer(answer)) => {
            answer.and_then(|reply| topics::go_on(conn.grant(), &mut out, *walk, reply))
        }
        (ReplyKind::View, Outcome::Answer(answer)) => {
            answer.and_then(|reply| get::write(&mut out, reply)).map(|()| None)
        }
        (kind, Outcome::Answer(answer)) => {
            answer.and_then(|reply| write_reply(&mut out, kind, reply)).map(|()| None)
        }
        (_, Outcome::Put(_) | Outcome::Acked(_)) => Err(unexpected(&Reply::Done)),
    };
    let code = written.as_ref().err().map(|error| error.code);
    match written {
        Ok(Some((command, kind))) => {
            return Some(Step::new(command, PendingReply { word, version, kind }));
        }
        Ok(None) => {}
        Err(error) => fault::write(&mut out, &error),
    }
    conn.metrics.resp(word.index(), code);
    None
}

/// Answers that come in one piece.
fn write_reply(out: &mut Out<'_>, kind: ReplyKind, reply: Reply) -> Result<(), Error> {
    match (kind, reply) {
        (ReplyKind::Ended, Reply::Ended(items)) => ack::write(out, only(items)?),
        (ReplyKind::AllEnded, Reply::Ended(items)) => ack::write_all(out, items),
        (ReplyKind::Extended, Reply::Extended(items)) => extend::write(out, only(items)?),
        (ReplyKind::Cancelled, Reply::Changed(items)) => cancel::write(out, only(items)?),
        (ReplyKind::Changed, Reply::Changed(items)) => change::write(out, only(items)?),
        (ReplyKind::Jobs { full }, Reply::Jobs(jobs)) => reserve::write(out, &jobs, full),
        (ReplyKind::Peeked, Reply::View(view)) => peek::write(out, view.as_ref()),
        (ReplyKind::Page { bodies }, Reply::Page(page)) => list::write(out, &page, bodies),
        (ReplyKind::Stats { of_all }, Reply::Stats(stats)) => {
            stats::write(out, None, &stats, of_all)
        }
        (ReplyKind::Forecast(asked), Reply::Forecast(counts)) => {
            forecast::write(out, &asked, &counts)
        }
        (ReplyKind::Count, Reply::Count(count)) => out.number(count),
        (ReplyKind::Done, Reply::Done) => out.status("OK"),
        (ReplyKind::Held, Reply::Lock(held)) => lock::write(out, held),
        (ReplyKind::Unlocked, Reply::Unlocked(is_free)) => lock::write_unlocked(out, is_free),
        (_, other) => return Err(unexpected(&other)),
    }
    Ok(())
}

/// The only item of a reply to one.
fn only<T>(items: Vec<Result<T, Error>>) -> Result<T, Error> {
    items.into_iter().next().unwrap_or_else(|| Err(unexpected(&Reply::Done)))
}
