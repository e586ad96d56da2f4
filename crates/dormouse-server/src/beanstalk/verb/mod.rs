//! One file per command or family of commands: the requests that it sends to the backend, and how
//! it writes the replies.

mod bury;
mod delete;
mod kick;
mod kick_job;
mod list;
mod pause;
mod peek;
mod put;
mod release;
mod reserve;
mod reserve_job;
mod stats;
mod stats_job;
mod stats_tube;
mod touch;
mod watch;

use std::sync::Arc;

use bytes::BytesMut;
use dormouse_core::command::{Operation, only};
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::op::{
    Cancel, EndReply, Extend, Get, Kick, OpenSession, PauseTopic, Peek, Reschedule, Reserve,
    ReserveId, SessionId, Stats, Topics,
};
use dormouse_core::topic::TopicName;

use super::counts::CountedCommand;
use super::parse::LineCommand;
use super::reservations::Reservation;
use super::tubes::Tube;
use super::{Beanstalk, Close, reply};
use crate::pipeline::{Next, Request, RequestReply, Turn};
use kick::KickProgress;
use list::Listing;
use reserve::Wait;
use stats::TotalsScan;

/// What to do with a reply.
pub(crate) enum PendingReply {
    Inserted(Arc<Tube>),
    Deleted(Reservation),
    Cancelled(JobId),
    Released(Reservation),
    Buried(Reservation),
    Touched(JobId),
    Opened(AfterOpen),
    Reserved(Wait),
    ReservedJob,
    Found,
    Peeked,
    KickSized(KickProgress),
    Kicked(KickProgress),
    KickedJob(JobId),
    Ran,
    PauseSeen(TopicName, u32),
    Paused(TopicName, u32),
    Listed(Box<Listing>),
    JobStats,
    TubeStats(TopicName),
    Totals,
    Added(Box<TotalsScan>),
}

/// The command that needed a session.
#[derive(Clone, Copy)]
pub(crate) enum AfterOpen {
    Reserve(Wait),
    ReserveJob(JobId),
}

impl Beanstalk {
    /// Runs a command.
    pub(super) fn ask(
        &mut self,
        ask: LineCommand,
        turn: &mut Turn<PendingReply>,
    ) -> Result<(), Close> {
        if let Some(counted) = counted(&ask) {
            self.shared.commands.count(counted);
        }
        match ask {
            LineCommand::Put(line) => self.put(line, turn),
            LineCommand::Peek(id) => Self::peek(id, turn),
            LineCommand::PeekNext(state) => self.peek_next(state, turn),
            LineCommand::Reserve(wait_s) => self.reserve(wait_s, turn),
            LineCommand::ReserveJob(id) => self.reserve_job(id, turn),
            LineCommand::Delete(id) => self.delete(id, turn),
            LineCommand::Release { id, priority, delay_s } => {
                self.release(id, priority, delay_s, turn);
            }
            LineCommand::Bury { id, priority } => self.bury(id, priority, turn),
            LineCommand::Kick(count) => self.kick(count, turn),
            LineCommand::KickJob(id) => Self::kick_job(id, turn),
            LineCommand::Touch(id) => self.touch(id, turn),
            LineCommand::StatsJob(id) => Self::stats_job(id, turn),
            LineCommand::StatsTube(tube) => Self::stats_tube(tube, turn),
            LineCommand::Stats => Self::stats(turn),
            LineCommand::Use(tube) => self.use_tube(tube, turn),
            LineCommand::Watch(tube) => self.watch(tube, turn),
            LineCommand::Ignore(tube) => self.ignore(&tube, turn),
            LineCommand::ListTubesWatched => self.list_tubes_watched(turn),
            LineCommand::ListTubeUsed => {
                reply::named("USING", self.used.name.as_str(), turn.reply_now());
            }
            LineCommand::ListTubes => Self::list_tubes(turn),
            LineCommand::Quit => return Err(Close),
            LineCommand::PauseTube { tube, pause_s } => self.pause_tube(tube, pause_s, turn),
        }
        Ok(())
    }

    /// Writes a reply, or sends the next request that the command needs.
    pub(super) fn handle_reply(
        &mut self,
        pending: PendingReply,
        reply: Result<RequestReply, Error>,
        out: &mut BytesMut,
    ) -> Next<PendingReply> {
        match pending {
            PendingReply::Inserted(tube) => {
                self.inserted(&tube, reply.and_then(RequestReply::of_put), out);
            }
            PendingReply::Deleted(held) => self.deleted(held, end(reply), out),
            PendingReply::Cancelled(id) => self.cancelled(id, of::<Cancel>(reply), out),
            PendingReply::Released(held) => self.ended(held, end(reply), reply::RELEASED, out),
            PendingReply::Buried(held) => self.ended(held, end(reply), reply::BURIED, out),
            PendingReply::Touched(id) => self.touched(id, of::<Extend>(reply), out),
            PendingReply::Opened(goal) => {
                return self.opened(goal, of::<OpenSession>(reply), out);
            }
            PendingReply::Reserved(wait) => return self.reserved(wait, of::<Reserve>(reply), out),
            PendingReply::ReservedJob => self.reserved_job(of::<ReserveId>(reply), out),
            PendingReply::Found => self.found(of::<Get>(reply).and_then(only), out),
            PendingReply::Peeked => self.peeked(of::<Peek>(reply), out),
            PendingReply::KickSized(progress) => {
                return Self::kick_sized(progress, of::<Stats>(reply), out);
            }
            PendingReply::Kicked(progress) => {
                return Self::kicked(progress, of::<Kick>(reply), out);
            }
            PendingReply::KickedJob(id) => {
                return Self::kicked_job(id, of::<Reschedule>(reply), out);
            }
            PendingReply::Ran => Self::ran(of::<Reschedule>(reply), out),
            PendingReply::PauseSeen(tube, pause_s) => {
                return Self::pause_seen(tube, pause_s, of::<Stats>(reply), out);
            }
            PendingReply::Paused(tube, pause_s) => {
                self.paused(&tube, pause_s, of::<PauseTopic>(reply), out);
            }
            PendingReply::Listed(listing) => return self.listed(listing, of::<Topics>(reply), out),
            PendingReply::JobStats => self.job_stats(of::<Get>(reply).and_then(only), out),
            PendingReply::TubeStats(tube) => self.tube_stats(&tube, of::<Stats>(reply), out),
            PendingReply::Totals => return self.totals(of::<Stats>(reply), out),
            PendingReply::Added(scan) => return self.added(scan, of::<Topics>(reply), out),
        }
        None
    }

    /// The reply to a command that ends a reservation.
    fn ended(
        &mut self,
        held: Reservation,
        ended: Result<EndReply, Error>,
        done: &[u8],
        out: &mut BytesMut,
    ) {
        match ended {
            Ok(EndReply::Gone) => out.extend_from_slice(reply::NOT_FOUND),
            Ok(EndReply::Done | EndReply::Retry { .. } | EndReply::Dead) => {
                out.extend_from_slice(done);
            }
            Err(error) => self.keep(held, &error, out),
        }
    }

    /// A failed command changed nothing: the job is still reserved, unless the error says
    /// otherwise.
    fn keep(&mut self, reservation: Reservation, error: &Error, out: &mut BytesMut) {
        use dormouse_core::error::Code::{Conflict, LeaseLost, NotFound};
        if !matches!(error.code, Conflict | LeaseLost | NotFound) {
            self.reservations.add(reservation);
        }
        reply::error(error, out);
    }

    /// The session was opened: goes on with what it was opened for.
    fn opened(
        &mut self,
        goal: AfterOpen,
        session: Result<SessionId, Error>,
        out: &mut BytesMut,
    ) -> Next<PendingReply> {
        match session {
            Ok(session) => {
                self.session = Some(session);
                Some(self.pursue(goal, session))
            }
            Err(error) => {
                reply::error(&error, out);
                None
            }
        }
    }

    fn pursue(&mut self, goal: AfterOpen, session: SessionId) -> Request<PendingReply> {
        match goal {
            AfterOpen::Reserve(wait) => self.reserve_step(wait, session),
            AfterOpen::ReserveJob(id) => Self::reserve_job_step(id, session),
        }
    }
}

fn of<O: Operation>(reply: Result<RequestReply, Error>) -> Result<O::Reply, Error> {
    reply.and_then(RequestReply::of::<O>)
}

fn end(reply: Result<RequestReply, Error>) -> Result<EndReply, Error> {
    reply.and_then(RequestReply::of_end)
}

/// Seconds in ms, at most the limit.
fn ms(seconds: u32, ms_max: u64) -> i64 {
    let ms = (u64::from(seconds) * 1_000).min(ms_max);
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// The rules add up to two ms to a time, because nothing may end early.
const ADDED_MS: u64 = 2;

/// Whole seconds left, rounded down like those of the original.
fn whole_s(left_ms: u64) -> u64 {
    left_ms.saturating_sub(ADDED_MS) / 1_000
}

/// How a command is counted; `kick-job`, `reserve-job` and `quit` are not.
fn counted(ask: &LineCommand) -> Option<CountedCommand> {
    use dormouse_core::job::State;
    Some(match ask {
        LineCommand::Put(_) => CountedCommand::Put,
        LineCommand::Peek(_) => CountedCommand::Peek,
        LineCommand::PeekNext(State::Ready) => CountedCommand::PeekReady,
        LineCommand::PeekNext(State::Delayed) => CountedCommand::PeekDelayed,
        LineCommand::PeekNext(_) => CountedCommand::PeekBuried,
        LineCommand::Reserve(None) => CountedCommand::Reserve,
        LineCommand::Reserve(Some(_)) => CountedCommand::ReserveWithTimeout,
        LineCommand::Delete(_) => CountedCommand::Delete,
        LineCommand::Release { .. } => CountedCommand::Release,
        LineCommand::Bury { .. } => CountedCommand::Bury,
        LineCommand::Kick(_) => CountedCommand::Kick,
        LineCommand::Touch(_) => CountedCommand::Touch,
        LineCommand::StatsJob(_) => CountedCommand::StatsJob,
        LineCommand::StatsTube(_) => CountedCommand::StatsTube,
        LineCommand::Stats => CountedCommand::Stats,
        LineCommand::Use(_) => CountedCommand::Use,
        LineCommand::Watch(_) => CountedCommand::Watch,
        LineCommand::Ignore(_) => CountedCommand::Ignore,
        LineCommand::ListTubesWatched => CountedCommand::ListTubesWatched,
        LineCommand::ListTubeUsed => CountedCommand::ListTubeUsed,
        LineCommand::ListTubes => CountedCommand::ListTubes,
        LineCommand::PauseTube { .. } => CountedCommand::PauseTube,
        LineCommand::ReserveJob(_) | LineCommand::KickJob(_) | LineCommand::Quit => return None,
    })
}
