//! Commands that are done in portions: their cost grows with what is stored, so others have their
//! turn between two portions.
//!
//! A command does its first portion in its own step; most are finished then. Otherwise it waits in
//! line, and the driver asks for one portion after the other, of each command in turn. A command
//! sees the changes that others make meanwhile.

use std::collections::VecDeque;

use super::{Machine, Output, Rule, When, answered};
use crate::backend::Ticket;
use crate::command::Reply;
use crate::error::{Code, Error, Fatal};
use crate::holder::HolderId;
use crate::job::{Job, JobId, Token};
use crate::limits::{LONG_COMMANDS_MAX, PORTION_BYTES, PORTION_JOBS, PORTION_LOOKS};
use crate::op::{
    Cancel, ChangeReply, DueProgress, EndReply, Extend, ExtendReply, ForecastProgress, GetProgress,
    KickProgress, Kill, ListProgress, Nack, NewestProgress, PeekProgress, PurgeProgress, Release,
    ReleaseProgress, Reschedule, ReviveProgress, RunProgress, StatsProgress, Target,
    TopicsProgress, check,
};
use crate::time::Now;
use crate::timeline::{Room, Timeline};
use crate::topic::TopicName;

/// A command between two portions. Acks are moved in here, too, one by one: what is larger than a
/// batch is in a box.
#[derive(Debug)]
pub(crate) enum LongCommand {
    Ack(BatchProgress<Token, EndReply>),
    Cancel(BatchProgress<Cancel, ChangeReply>),
    Extend(BatchProgress<Extend, ExtendReply>, Option<HolderId>),
    Forecast(Box<ForecastProgress>),
    Get(GetProgress),
    Kick(Box<KickProgress>),
    Kill(BatchProgress<Kill, EndReply>),
    List(Box<ListProgress>),
    ListDue(Box<DueProgress>),
    ListNewest(Box<NewestProgress>),
    Nack(BatchProgress<Nack, EndReply>),
    Peek(Box<PeekProgress>),
    Purge(Box<PurgeProgress>),
    Release(BatchProgress<Release, EndReply>),
    ReleaseTopic(ReleaseProgress),
    Reschedule(BatchProgress<Reschedule, ChangeReply>),
    Revive(BatchProgress<Target, ChangeReply>),
    ReviveTopic(ReviveProgress),
    RunSchedule(Box<RunProgress>),
    Stats(Box<StatsProgress>),
    Topics(Box<TopicsProgress>),
    TopicsOf(BatchProgress<JobId, TopicName>),
}

/// The result of a portion.
#[derive(Debug)]
pub(crate) enum Portion {
    Done(Reply),
    More(LongCommand),
}

/// How much a portion may still do: jobs to read, their bytes, and questions about lanes.
#[derive(Debug)]
pub(crate) struct PortionBudget {
    room: Room,
    looks: usize,
}

impl PortionBudget {
    pub(crate) fn new() -> PortionBudget {
        let room = Room { jobs: PORTION_JOBS, bytes: PORTION_BYTES };
        PortionBudget { room, looks: PORTION_LOOKS }
    }

    /// Of a batch, whose items are few enough: only the bytes that are read for them count.
    fn of_batch() -> PortionBudget {
        let room = Room { jobs: usize::MAX, bytes: 4 * PORTION_BYTES };
        PortionBudget { room, looks: usize::MAX }
    }

    /// Whether there is something left of it.
    pub(crate) fn is_left(&self) -> bool {
        self.room.is_left() && self.looks > 0
    }

    /// Room for reading jobs, no more than is wanted.
    pub(crate) fn room(&self, wanted: Room) -> Room {
        let (jobs, bytes) = (self.room.jobs.min(wanted.jobs), self.room.bytes.min(wanted.bytes));
        Room { jobs, bytes }
    }

    /// A job was read.
    pub(crate) fn take(&mut self, job: &Job) {
        self.room.take(job);
    }

    /// A lane was asked for something, at this cost.
    pub(crate) fn look(&mut self, cost: usize) {
        self.looks = self.looks.saturating_sub(cost);
    }

    /// Nothing is left of it.
    pub(crate) fn end(&mut self) {
        self.looks = 0;
    }
}

/// A batch between two portions. It is done in one unless its jobs are large.
#[derive(Debug)]
pub(crate) struct BatchProgress<I, R> {
    items: std::vec::IntoIter<I>,
    pub(crate) replies: Vec<Result<R, Error>>,
}

impl<I, R> BatchProgress<I, R> {
    pub(crate) fn new(items: Vec<I>) -> Result<BatchProgress<I, R>, Error> {
        check::batch(items.len())?;
        let replies = Vec::with_capacity(items.len());
        Ok(BatchProgress { items: items.into_iter(), replies })
    }

    /// Every item has its reply.
    pub(crate) fn is_done(&self) -> bool {
        self.items.len() == 0
    }

    /// The reply, or the command that has items to go.
    pub(crate) fn into_portion(
        self,
        reply: impl FnOnce(Vec<Result<R, Error>>) -> Reply,
        more: impl FnOnce(Self) -> LongCommand,
    ) -> Portion {
        if self.is_done() { Portion::Done(reply(self.replies)) } else { Portion::More(more(self)) }
    }
}

/// Commands that have portions to go, in the order they came.
pub(crate) type LongCommands = VecDeque<(Ticket, LongCommand)>;

impl<T: Timeline> Machine<T> {
    /// Does the first portion of a command.
    pub(crate) fn begin_long(
        &mut self,
        now: Now,
        ticket: Ticket,
        command: Rule<LongCommand>,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        match answered(command)? {
            Ok(_) if self.long_commands.len() >= LONG_COMMANDS_MAX => {
                out.answers.push((ticket, Err(too_many_long()), When::Durable));
            }
            Ok(command) => {
                if let Some(command) = self.portion(now, ticket, command, out)? {
                    self.long_commands.push_back((ticket, command));
                }
            }
            Err(error) => out.answers.push((ticket, Err(error), When::Durable)),
        }
        Ok(())
    }

    /// Does a batch, or the first portion of it. It is not refused because of other long commands.
    pub(crate) fn begin_batch(
        &mut self,
        now: Now,
        ticket: Ticket,
        begun: Result<LongCommand, Error>,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        let mut command = match begun {
            Ok(command) => command,
            Err(error) => {
                out.answers.push((ticket, Err(error), When::Durable));
                return Ok(());
            }
        };
        while let Some(rest) = self.portion(now, ticket, command, out)? {
            if self.long_commands.len() < LONG_COMMANDS_MAX {
                self.long_commands.push_back((ticket, rest));
                break;
            }
            command = rest;
        }
        Ok(())
    }

    /// Applies a rule to items of a batch as far as the budget reaches. An item that is refused
    /// does not stop the others.
    pub(crate) fn batch_portion<I, R>(
        &mut self,
        batch: &mut BatchProgress<I, R>,
        mut rule: impl FnMut(&mut Machine<T>, I, &mut PortionBudget) -> Rule<R>,
    ) -> Result<(), Fatal> {
        let mut budget = PortionBudget::of_batch();
        while budget.is_left()
            && let Some(item) = batch.items.next()
        {
            batch.replies.push(answered(rule(self, item, &mut budget))?);
        }
        Ok(())
    }

    /// Whether commands have portions to go.
    pub fn has_long_commands(&self) -> bool {
        !self.long_commands.is_empty()
    }

    /// Does one more portion of a long command: of each in turn, so that none blocks the others.
    pub fn continue_long(&mut self, now: Now, out: &mut Output) -> Result<(), Fatal> {
        let Some((ticket, command)) = self.long_commands.pop_front() else { return Ok(()) };
        self.timeline.renew();
        if let Some(command) = self.portion(now, ticket, command, out)? {
            self.long_commands.push_back((ticket, command));
        }
        self.move_deadlines(now, out);
        Ok(())
    }

    /// Gives the command back if it is not finished.
    fn portion(
        &mut self,
        now: Now,
        ticket: Ticket,
        command: LongCommand,
        out: &mut Output,
    ) -> Result<Option<LongCommand>, Fatal> {
        let is_extend = matches!(command, LongCommand::Extend(..));
        let when = if is_extend { When::Prompt } else { When::Durable };
        let portion = match command {
            LongCommand::Ack(batch) => self.ack_portion(now, batch, out),
            LongCommand::Cancel(batch) => self.cancel_portion(now, batch, out),
            LongCommand::Extend(batch, holder) => self.extend_portion(now, batch, holder, out),
            LongCommand::Forecast(progress) => self.forecast_portion(*progress),
            LongCommand::Get(progress) => self.get_portion(now, progress),
            LongCommand::Kick(progress) => self.kick_portion(now, *progress, out),
            LongCommand::Kill(batch) => self.kill_portion(now, batch, out),
            LongCommand::List(progress) => self.list_portion(now, *progress),
            LongCommand::ListDue(progress) => self.list_due_portion(now, *progress),
            LongCommand::ListNewest(progress) => self.list_newest_portion(now, *progress),
            LongCommand::Nack(batch) => self.nack_portion(now, batch, out),
            LongCommand::Peek(progress) => self.peek_portion(now, *progress),
            LongCommand::Purge(progress) => self.purge_portion(now, *progress, out),
            LongCommand::Release(batch) => self.release_portion(now, batch, out),
            LongCommand::ReleaseTopic(progress) => Ok(self.release_leases(now, progress, out)),
            LongCommand::Reschedule(batch) => self.reschedule_portion(now, batch, out),
            LongCommand::Revive(batch) => self.revive_batch(now, batch, out),
            LongCommand::ReviveTopic(progress) => self.revive_portion(now, progress, out),
            LongCommand::RunSchedule(progress) => self.run_portion(now, progress, out),
            LongCommand::Stats(progress) => self.stats_portion(now, *progress),
            LongCommand::Topics(progress) => self.topics_portion(now, *progress),
            LongCommand::TopicsOf(batch) => self.topics_of_portion(batch),
        };
        let answer = match answered(portion)? {
            Ok(Portion::More(command)) => return Ok(Some(command)),
            Ok(Portion::Done(reply)) => Ok(reply),
            Err(error) => Err(error),
        };
        out.answers.push((ticket, answer, when));
        Ok(None)
    }
}

fn too_many_long() -> Error {
    Error::new(
        Code::Busy,
        format!("{LONG_COMMANDS_MAX} long commands are under way, the limit; try again later"),
    )
}
