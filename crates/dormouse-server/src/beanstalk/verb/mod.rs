//! One file per command, or per few that are the same: what it asks of the backend, and what it
//! says when that is answered.

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
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::op::{Ended, SessionId};
use dormouse_core::topic::TopicName;

use super::holds::Hold;
use super::parse::Ask;
use super::tally::Counted;
use super::tubes::Tube;
use super::{Beanstalk, Bye, words};
use crate::desk::unexpected;
use crate::pipeline::{Outcome, Step, Turn};
use kick::Kicking;
use list::Listing;
use reserve::Wait;
use stats::Adding;

/// What to do with an answer.
pub(crate) enum Then {
    Inserted(Arc<Tube>),
    Deleted(Box<Hold>),
    Cancelled(JobId),
    Released(Box<Hold>),
    Buried(Box<Hold>),
    Touched(JobId),
    Opened(Goal),
    Reserved(Wait),
    Taken,
    Found,
    PeekedAt,
    Kicked(Kicking),
    KickedJob(JobId),
    Ran,
    PauseSeen(TopicName, u32),
    Paused(TopicName, u32),
    Listed(Box<Listing>),
    JobStats,
    TubeStats(TopicName),
    Totals,
    Added(Box<Adding>),
}

/// What a session was opened for.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    Reserve(Wait),
    ReserveJob(JobId),
}

/// The one item of an answer, which must be of this kind, to a list of one.
macro_rules! one {
    ($answer:expr, $kind:ident) => {
        match $answer {
            Ok(Reply::$kind(mut items)) => items.pop().unwrap_or_else(|| Err(crate::desk::lost())),
            Ok(other) => Err(crate::desk::unexpected(&other)),
            Err(error) => Err(error),
        }
    };
}
use one;

impl Beanstalk {
    /// Begins what a line asks.
    pub(super) fn ask(&mut self, ask: Ask, turn: &mut Turn<Then>) -> Result<(), Bye> {
        if let Some(counted) = counted(&ask) {
            self.house.tally.count(counted);
        }
        match ask {
            Ask::Put(line) => self.put(line, turn),
            Ask::Peek(id) => Self::peek(id, turn),
            Ask::PeekNext(state) => self.peek_next(state, turn),
            Ask::Reserve(wait_s) => self.reserve(wait_s, turn),
            Ask::ReserveJob(id) => self.reserve_job(id, turn),
            Ask::Delete(id) => self.delete(id, turn),
            Ask::Release { id, priority, delay_s } => self.release(id, priority, delay_s, turn),
            Ask::Bury { id, priority } => self.bury(id, priority, turn),
            Ask::Kick(count) => self.kick(count, turn),
            Ask::KickJob(id) => Self::kick_job(id, turn),
            Ask::Touch(id) => self.touch(id, turn),
            Ask::StatsJob(id) => Self::stats_job(id, turn),
            Ask::StatsTube(tube) => Self::stats_tube(tube, turn),
            Ask::Stats => Self::stats(turn),
            Ask::Use(tube) => self.use_tube(tube, turn),
            Ask::Watch(tube) => self.watch(tube, turn),
            Ask::Ignore(tube) => self.ignore(&tube, turn),
            Ask::ListTubesWatched => self.list_tubes_watched(turn),
            Ask::ListTubeUsed => words::named("USING", self.used.name.as_str(), turn.say()),
            Ask::ListTubes => Self::list_tubes(turn),
            Ask::Quit => return Err(Bye),
            Ask::PauseTube { tube, pause_s } => self.pause_tube(tube, pause_s, turn),
        }
        Ok(())
    }

    /// Says what came of it, or asks on.
    pub(super) fn tell(
        &mut self,
        then: Then,
        outcome: Outcome,
        out: &mut BytesMut,
    ) -> Option<Step<Then>> {
        let answer = match outcome {
            Outcome::Answer(answer) => answer,
            Outcome::Put(put) => {
                if let Then::Inserted(tube) = then {
                    self.inserted(&tube, put, out);
                }
                return None;
            }
            Outcome::Acked(ended) => {
                if let Then::Deleted(hold) = then {
                    self.deleted(*hold, ended, out);
                }
                return None;
            }
        };
        match then {
            Then::Inserted(_) | Then::Deleted(_) => {}
            Then::Cancelled(id) => self.cancelled(id, answer, out),
            Then::Released(hold) => self.ended(*hold, answer, words::RELEASED, out),
            Then::Buried(hold) => self.ended(*hold, answer, words::BURIED, out),
            Then::Touched(id) => self.touched(id, answer, out),
            Then::Opened(goal) => return self.opened(goal, answer, out),
            Then::Reserved(wait) => return self.reserved(wait, answer, out),
            Then::Taken => self.taken(answer, out),
            Then::Found => self.found(answer, out),
            Then::PeekedAt => self.peeked_at(answer, out),
            Then::Kicked(kicking) => return Self::kicked(kicking, answer, out),
            Then::KickedJob(id) => return Self::kicked_job(id, answer, out),
            Then::Ran => Self::ran(answer, out),
            Then::PauseSeen(tube, pause_s) => return Self::pause_seen(tube, pause_s, answer, out),
            Then::Paused(tube, pause_s) => self.paused(&tube, pause_s, answer, out),
            Then::Listed(listing) => return self.listed(listing, answer, out),
            Then::JobStats => self.job_stats(answer, out),
            Then::TubeStats(tube) => self.tube_stats(&tube, answer, out),
            Then::Totals => return self.totals(answer, out),
            Then::Added(adding) => return self.added(adding, answer, out),
        }
        None
    }

    /// A reservation was to be ended by its token.
    fn ended(&mut self, hold: Hold, answer: Answer, done: &[u8], out: &mut BytesMut) {
        match one!(answer, Ended) {
            Ok(Ended::Gone) => out.extend_from_slice(words::NOT_FOUND),
            Ok(Ended::Done | Ended::Dead) => out.extend_from_slice(done),
            Err(error) => self.keep(hold, &error, out),
        }
    }

    /// What could not be done has not been done: the job is still held, unless it is known better.
    fn keep(&mut self, hold: Hold, error: &Error, out: &mut BytesMut) {
        use dormouse_core::error::Code::{Conflict, LeaseLost, NotFound};
        if !matches!(error.code, Conflict | LeaseLost | NotFound) {
            self.holds.add(hold);
        }
        words::error(error, out);
    }

    /// A session was opened for this.
    fn opened(&mut self, goal: Goal, answer: Answer, out: &mut BytesMut) -> Option<Step<Then>> {
        match answer {
            Ok(Reply::Session(session)) => {
                self.session = Some(session);
                Some(self.pursue(goal, session))
            }
            Ok(other) => {
                words::error(&unexpected(&other), out);
                None
            }
            Err(error) => {
                words::error(&error, out);
                None
            }
        }
    }

    fn pursue(&mut self, goal: Goal, session: SessionId) -> Step<Then> {
        match goal {
            Goal::Reserve(wait) => self.reserve_step(wait, session),
            Goal::ReserveJob(id) => Self::reserve_job_step(id, session),
        }
    }
}

/// Seconds as the rules have them: at most what they allow.
fn ms(seconds: u32, ms_max: u64) -> i64 {
    let ms = (u64::from(seconds) * 1_000).min(ms_max);
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// Times end on a ms, and up to two of them are added because nothing may end early.
const ADDED_MS: u64 = 2;

/// Whole seconds that are left: those of the original have always begun.
fn whole_s(left_ms: u64) -> u64 {
    left_ms.saturating_sub(ADDED_MS) / 1_000
}

/// As what a command counts; `kick-job`, `reserve-job` and `quit` are not counted.
fn counted(ask: &Ask) -> Option<Counted> {
    use dormouse_core::job::State;
    Some(match ask {
        Ask::Put(_) => Counted::Put,
        Ask::Peek(_) => Counted::Peek,
        Ask::PeekNext(State::Ready) => Counted::PeekReady,
        Ask::PeekNext(State::Delayed) => Counted::PeekDelayed,
        Ask::PeekNext(_) => Counted::PeekBuried,
        Ask::Reserve(None) => Counted::Reserve,
        Ask::Reserve(Some(_)) => Counted::ReserveWithTimeout,
        Ask::Delete(_) => Counted::Delete,
        Ask::Release { .. } => Counted::Release,
        Ask::Bury { .. } => Counted::Bury,
        Ask::Kick(_) => Counted::Kick,
        Ask::Touch(_) => Counted::Touch,
        Ask::StatsJob(_) => Counted::StatsJob,
        Ask::StatsTube(_) => Counted::StatsTube,
        Ask::Stats => Counted::Stats,
        Ask::Use(_) => Counted::Use,
        Ask::Watch(_) => Counted::Watch,
        Ask::Ignore(_) => Counted::Ignore,
        Ask::ListTubesWatched => Counted::ListTubesWatched,
        Ask::ListTubeUsed => Counted::ListTubeUsed,
        Ask::ListTubes => Counted::ListTubes,
        Ask::PauseTube { .. } => Counted::PauseTube,
        Ask::ReserveJob(_) | Ask::KickJob(_) | Ask::Quit => return None,
    })
}
