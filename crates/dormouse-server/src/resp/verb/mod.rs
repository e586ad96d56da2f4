//! One file per verb: how it is parsed, which command it sends, how its reply is written.

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
pub(super) mod locks;
mod many;
pub(super) mod nack;
pub(super) mod pause;
pub(super) mod peek;
pub(super) mod preview;
pub(super) mod purge;
pub(super) mod put;
pub(super) mod put_schedule;
pub(super) mod release;
pub(super) mod reschedule;
pub(super) mod reserve;
pub(super) mod reserve_id;
pub(super) mod resume;
pub(super) mod revive;
pub(super) mod schedule;
pub(super) mod set_topic;
pub(super) mod stats;
pub(super) mod topics;

use bytes::BytesMut;
use dormouse_core::command::{Command, only};
use dormouse_core::error::Error;
use dormouse_core::op::{
    Ack, Cancel, Chain, Extend, Forecast, Get, GetSchedule, Kick, List, Lock, Locks, Peek, Purge,
    PutSchedule, Reschedule, Reserve, Resume, RunSchedule, Schedules, Stats, Topics, Unlock,
};

use super::conn::{Conn, PendingReply};
use super::encode::Out;
use super::fault;
use crate::pipeline::{Next, Request, RequestReply};
use crate::walk::Walk;
use lock::LockRefusal;
use many::Many;
use put::PutForm;

/// How to write the reply to a verb.
pub(super) enum ReplyKind {
    /// A job that was put.
    Put(PutForm),
    /// One lease or job that ended.
    Ended,
    /// Several.
    AllEnded,
    /// A lease that ended, and the jobs that were put.
    Chain(Vec<PutForm>),
    /// A lease that was extended.
    Extended,
    /// Several.
    AllExtended,
    /// A job that was removed.
    Cancelled,
    /// A job that was moved or revived.
    Changed,
    /// Jobs that the client has leased; with all their fields?
    Jobs { full: bool },
    /// A job, or null if it does not exist.
    View,
    /// The next job of a state, or null.
    Peeked,
    /// A page of jobs; with their bodies?
    Page { bodies: bool },
    /// A page of the jobs that fit a filter, read in portions.
    Filtered(Box<list::FilteredList>),
    /// A page of topics, read in portions.
    Topics(Box<Walk>),
    /// Counts of one topic or of all.
    Stats { of_all: bool },
    /// Jobs per step.
    Forecast(Box<Forecast>),
    /// The number of jobs that were removed.
    Purged,
    /// The size of the topic whose jobs are then changed in portions.
    ManySize(Box<Many>),
    /// The number of jobs that were changed, portion by portion.
    Many(Box<Many>),
    /// OK.
    Done,
    /// A page of locks.
    Locks,
    /// What became of a schedule.
    PutSchedule,
    /// A schedule.
    Schedule,
    /// A page of schedules.
    Schedules,
    /// The jobs of a schedule that was run.
    RanSchedule,
    /// A lock that is held.
    Held(LockRefusal),
    /// A lock that was given back.
    Unlocked(LockRefusal),
}

/// The command that a reply leads to, and how to write its reply; `None` if the reply is written.
type NextCommand = Result<Option<(Command, ReplyKind)>, Error>;

/// Writes the reply to a request, or sends the next command that the request needs.
pub(super) fn on_reply(
    conn: &mut Conn,
    pending: PendingReply,
    reply: Result<RequestReply, Error>,
    bytes: &mut BytesMut,
) -> Next<PendingReply> {
    let PendingReply { command: no, version, kind } = pending;
    let mut out = Out::new(bytes, version);
    let written = match kind {
        ReplyKind::ManySize(many) => {
            many.on_size(&mut out, reply.and_then(RequestReply::of::<Stats>))
        }
        ReplyKind::Many(many) => {
            many.on_portion(&mut out, reply.and_then(RequestReply::of::<Kick>))
        }
        ReplyKind::Topics(walk) => reply
            .and_then(RequestReply::of::<Topics>)
            .and_then(|page| topics::on_page(conn.grant(), &mut out, *walk, page)),
        ReplyKind::Filtered(list) => {
            reply.and_then(RequestReply::of::<List>).and_then(|page| list.on_page(&mut out, page))
        }
        ReplyKind::Held(refusal) => {
            let held = reply.and_then(RequestReply::of::<Lock>);
            held.map(|held| lock::write(&mut out, held))
                .map_err(|error| refusal.of(error))
                .map(|()| None)
        }
        ReplyKind::Unlocked(refusal) => {
            let is_free = reply.and_then(RequestReply::of::<Unlock>);
            is_free
                .map(|is_free| lock::write_unlocked(&mut out, is_free))
                .map_err(|error| refusal.of(error))
                .map(|()| None)
        }
        kind => reply.and_then(|reply| write_reply(&mut out, kind, reply)).map(|()| None),
    };
    let code = written.as_ref().err().map(|error| error.code);
    match written {
        Ok(Some((command, kind))) => {
            return Some(Request::new(command, PendingReply { command: no, version, kind }));
        }
        Ok(None) => {}
        Err(error) => fault::write(&mut out, &error),
    }
    conn.metrics.resp(no.index(), code);
    None
}

/// Writes a reply that is complete.
fn write_reply(out: &mut Out<'_>, kind: ReplyKind, reply: RequestReply) -> Result<(), Error> {
    match kind {
        ReplyKind::Put(form) => put::write(out, reply.of_put()?, form),
        ReplyKind::Ended => ack::write(out, reply.of_end()?),
        ReplyKind::AllEnded => ack::write_all(out, reply.of::<Ack>()?),
        ReplyKind::Chain(forms) => ack::write_chain(out, reply.of::<Chain>()?, &forms),
        ReplyKind::Extended => extend::write(out, reply.of::<Extend>()?),
        ReplyKind::AllExtended => extend::write_all(out, reply.of::<Vec<Extend>>()?),
        ReplyKind::Cancelled => cancel::write(out, reply.of::<Cancel>()?),
        ReplyKind::Changed => change::write(out, reply.of::<Reschedule>()?),
        ReplyKind::Jobs { full } => reserve::write(out, &reply.of::<Reserve>()?, full),
        ReplyKind::View => get::write(out, only(reply.of::<Get>()?))?,
        ReplyKind::Peeked => peek::write(out, reply.of::<Peek>()?.as_ref()),
        ReplyKind::Page { bodies } => list::write(out, &reply.of::<List>()?, bodies),
        ReplyKind::Stats { of_all } => stats::write(out, None, &reply.of::<Stats>()?, of_all),
        ReplyKind::Forecast(asked) => forecast::write(out, &asked, &reply.of::<Forecast>()?),
        ReplyKind::Locks => locks::write(out, &reply.of::<Locks>()?),
        ReplyKind::PutSchedule => put_schedule::write(out, &reply.of::<PutSchedule>()?),
        ReplyKind::Schedule => schedule::write(out, &reply.of::<GetSchedule>()?),
        ReplyKind::Schedules => schedule::write_page(out, &reply.of::<Schedules>()?),
        ReplyKind::RanSchedule => schedule::write_ran(out, &reply.of::<RunSchedule>()?)?,
        ReplyKind::Purged => out.number(reply.of::<Purge>()?),
        ReplyKind::Done => {
            reply.of::<Resume>()?;
            out.status("OK");
        }
        ReplyKind::ManySize(_)
        | ReplyKind::Many(_)
        | ReplyKind::Topics(_)
        | ReplyKind::Filtered(_)
        | ReplyKind::Held(_)
        | ReplyKind::Unlocked(_) => unreachable!("the caller handles them"),
    }
    Ok(())
}
