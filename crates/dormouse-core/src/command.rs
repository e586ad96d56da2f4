//! The union of all operations and of their answers; each is defined in its own file in `op/`.

use crate::backend::Ticket;
use crate::error::Error;
use crate::op::*;

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
    Ack(Vec<crate::job::Token>),
    /// Failed; try again later.
    Nack(Vec<Nack>),
    /// Give back unspent.
    Release(Vec<Release>),
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
    /// Look at the next job of a state.
    Peek(Peek),
    /// Look at a page of jobs of a state.
    List(List),
    /// A page of topics.
    Topics(Topics),
    /// Change a topic's settings.
    SetTopic(SetTopic),
    /// Counts of a topic, or of all.
    Stats(Stats),
    /// Stop reserve on a topic.
    Pause(PauseTopic),
    /// Undo a pause.
    Resume(crate::topic::TopicName),
    /// Remove all resting jobs of a topic.
    Purge(crate::topic::TopicName),
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
    /// Answer a waiting reserve or lock now with nothing.
    Withdraw(Ticket),
}

/// The answer to an operation, variant by variant as in [`Command`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To `Put`: per item.
    Put(Vec<Result<PutReply, Error>>),
    /// To `Reserve` and `ReserveId`.
    Jobs(Vec<LeasedJob>),
    /// To `Ack`, `Nack`, `Release`, `Kill`: per item.
    Ended(Vec<Result<Ended, Error>>),
    /// To `Extend`: per item, when the lease now expires (wall ms).
    Extended(Vec<Result<Extended, Error>>),
    /// To `Cancel`, `Reschedule` and `Revive`: per item, the id of the job concerned.
    Changed(Vec<Result<Changed, Error>>),
    /// To `ReviveTopic`, `Kick` and `Purge`: how many.
    Count(u64),
    /// To `Get`: per item.
    Views(Vec<Result<JobView, Error>>),
    /// To `Peek`.
    View(Option<JobView>),
    /// To `List`.
    Page(Page),
    /// To `Topics`.
    Topics(TopicsPage),
    /// To `Stats`.
    Stats(TopicStats),
    /// To `Forecast`: jobs per step.
    Forecast(Vec<u64>),
    /// To `OpenSession`.
    Session(SessionId),
    /// To `Lock` and `RenewLock`.
    Lock(LockReply),
    /// To `Unlock`: whether the lock is free now (false = still held by an outer acquire).
    Unlocked(bool),
    /// To `SetTopic`, `Pause`, `Resume`, `CloseSession`, `Withdraw`.
    Done,
}
