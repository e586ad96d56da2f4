//! The union of all operations and of their replies; each is defined in its own file in `op/`.
//!
//! A backend sees the two enums; a caller works with one operation and its own type of reply, which
//! [`Operation`] ties together.

mod names;
mod undo;
mod weight;

use std::sync::Arc;

use crate::backend::Ticket;
use crate::error::Error;
use crate::job::{JobId, Token};
use crate::op::*;
use crate::refusal::unexpected;
use crate::topic::{Push, TopicName};

pub use names::Name;
pub use undo::Undo;

/// A request and the one type of reply it can have.
///
/// Implemented for every request in `op/`, for a batch (`Vec<Nack>`) and for one item of it
/// (`Nack`), whose own error is then the error of the call.
pub trait Operation: Into<Command> {
    /// The type of its reply, unless it is refused.
    type Reply;

    /// Takes the reply to this operation; any other reply is an error of the backend.
    fn from_reply(reply: Reply) -> Result<Self::Reply, Error>;
}

/// Implements [`Operation`] beside a request: its reply's type, its command, its variant of
/// [`Reply`].
macro_rules! operation {
    ($($request:ty => $reply:ty, $from:pat => $command:expr, $to:pat => $value:expr;)+) => {$(
        impl From<$request> for crate::command::Command {
            fn from($from: $request) -> crate::command::Command {
                $command
            }
        }

        impl crate::command::Operation for $request {
            type Reply = $reply;

            fn from_reply(reply: crate::command::Reply) -> Result<$reply, crate::error::Error> {
                match reply {
                    $to => $value,
                    other => Err(crate::refusal::unexpected(&other)),
                }
            }
        }
    )+};
}
pub(crate) use operation;

/// The reply to the only item of a batch.
pub fn only<T>(mut items: Vec<Result<T, Error>>) -> Result<T, Error> {
    match items.pop() {
        Some(item) if items.is_empty() => item,
        _ => Err(unexpected(&Reply::Done)),
    }
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Add jobs.
    Put(Vec<Put>),
    /// Take jobs that are due.
    Reserve(Reserve),
    /// Take a given job now.
    ReserveId(ReserveId),
    /// Done.
    Ack(Vec<Token>),
    /// Done, and others come after it.
    Chain(Chain),
    /// Failed; try again later.
    Nack(Vec<Nack>),
    /// Give back unspent.
    Release(Vec<Release>),
    /// Give back leases of a topic, whoever has them.
    ReleaseTopic(ReleaseTopic),
    /// Prolong leases.
    Extend(Vec<Extend>),
    /// To dead.
    Kill(Vec<Kill>),
    /// Remove.
    Cancel(Vec<Cancel>),
    /// Move the due time; without one, run now.
    Reschedule(Vec<Reschedule>),
    /// Back from dead.
    Revive(Vec<Target>),
    /// Back from dead, the oldest of a topic.
    ReviveTopic(ReviveTopic),
    /// Delayed jobs of a topic to ready, the earliest first.
    Kick(Kick),
    /// Look at jobs.
    Get(Vec<Target>),
    /// The topics of jobs.
    TopicsOf(Vec<JobId>),
    /// Look at the next job of a state.
    Peek(Peek),
    /// Look at a page of jobs of a state.
    List(List),
    /// A page of topics.
    Topics(Topics),
    /// Change a topic's settings.
    SetTopic(Box<SetTopic>),
    /// Change how a topic's jobs are pushed.
    SetPush(Box<SetPush>),
    /// How a topic's jobs are pushed.
    GetPush(TopicName),
    /// A page of the topics that are pushed.
    Pushes(Pushes),
    /// Counts of a topic, or of all.
    Stats(Stats),
    /// Stop reserve on a topic.
    Pause(PauseTopic),
    /// Undo a pause.
    Resume(TopicName),
    /// Remove resting jobs of a topic.
    Purge(Purge),
    /// Jobs coming due per step of time.
    Forecast(Forecast),
    /// Begin a session.
    OpenSession,
    /// End a session: its leases are released.
    CloseSession(SessionId),
    /// Take a lock.
    Lock(Lock),
    /// Prolong a lock.
    RenewLock(RenewLock),
    /// Give a lock back.
    Unlock(Unlock),
    /// Free a lock, whoever holds it.
    BreakLock(BreakLock),
    /// A page of the locks that are held.
    Locks(Locks),
    /// Define a schedule.
    PutSchedule(Box<PutSchedule>),
    /// Look at a schedule.
    GetSchedule(GetSchedule),
    /// A page of a topic's schedules.
    Schedules(Schedules),
    /// Remove a schedule.
    RemoveSchedule(RemoveSchedule),
    /// Change when a schedule ticks next.
    ChangeSchedule(ChangeSchedule),
    /// Put jobs of a schedule.
    RunSchedule(RunSchedule),
    /// Answer a waiting reserve or lock now with nothing.
    Withdraw(Ticket),
}

/// The answer to an operation, variant by variant as in [`Command`]. An answer is moved from the
/// rules to the connection of its caller, so what is large and rare is in a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To `Put` and `RunSchedule`: per item.
    Put(Vec<Result<PutReply, Error>>),
    /// To `Reserve` and `ReserveId`.
    Jobs(Vec<LeasedJob>),
    /// To `Ack`, `Nack`, `Release`, `Kill`: per item.
    Ended(Vec<Result<EndReply, Error>>),
    /// To `Extend`: per item, when the lease now expires (wall ms).
    Extended(Vec<Result<ExtendReply, Error>>),
    /// To `Cancel`, `Reschedule` and `Revive`: per item, the id of the job concerned.
    Changed(Vec<Result<ChangeReply, Error>>),
    /// To `ReviveTopic`, `ReleaseTopic`, `Kick` and `Purge`: how many.
    Count(u64),
    /// To `Chain`.
    Chain(ChainReply),
    /// To `Get`: per item.
    Views(Vec<Result<JobView, Error>>),
    /// To `TopicsOf`: per item.
    TopicsOf(Vec<Result<TopicName, Error>>),
    /// To `Peek`.
    View(Option<Box<JobView>>),
    /// To `List`.
    Page(Page),
    /// To `Topics`.
    Topics(TopicsPage),
    /// To `SetPush` and `GetPush`; `None` = the topic is not pushed.
    Push(Option<Arc<Push>>),
    /// To `Pushes`.
    Pushes(PushesPage),
    /// To `Stats`.
    Stats(Box<TopicStats>),
    /// To `Forecast`: jobs per step.
    Forecast(Vec<u64>),
    /// To `OpenSession`.
    Session(SessionId),
    /// To `Lock` and `RenewLock`.
    Lock(LockReply),
    /// To `Unlock`: whether the lock is free now (false = still held by an outer acquire).
    Unlocked(bool),
    /// To `Locks`.
    Locks(LocksPage),
    /// To `PutSchedule`.
    PutSchedule(Box<PutScheduleReply>),
    /// To `GetSchedule` and `ChangeSchedule`.
    Schedule(Box<ScheduleView>),
    /// To `Schedules`.
    Schedules(SchedulesPage),
    /// To `RemoveSchedule`, `BreakLock`, `SetTopic`, `Pause`, `Resume`, `CloseSession`, `Withdraw`.
    Done,
}
