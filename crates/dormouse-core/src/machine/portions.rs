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
use crate::limits::LONG_COMMANDS_MAX;
use crate::op::{
    ForecastProgress, KickProgress, ListProgress, PeekProgress, ReviveProgress, StatsProgress,
    TopicsProgress,
};
use crate::time::Now;
use crate::timeline::Timeline;

/// A command between two portions.
#[derive(Debug)]
pub(crate) enum LongCommand {
    Forecast(ForecastProgress),
    Kick(KickProgress),
    List(ListProgress),
    Peek(PeekProgress),
    ReviveTopic(ReviveProgress),
    Stats(StatsProgress),
    Topics(TopicsProgress),
}

/// The result of a portion.
#[derive(Debug)]
pub(crate) enum Portion {
    Done(Reply),
    More(LongCommand),
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

    /// Whether commands have portions to go.
    pub fn has_long_commands(&self) -> bool {
        !self.long_commands.is_empty()
    }

    /// Does one more portion of a long command: of each in turn, so that none blocks the others.
    pub fn continue_long(&mut self, now: Now, out: &mut Output) -> Result<(), Fatal> {
        let Some((ticket, command)) = self.long_commands.pop_front() else { return Ok(()) };
        if let Some(command) = self.portion(now, ticket, command, out)? {
            self.long_commands.push_back((ticket, command));
        }
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
        let portion = match command {
            LongCommand::Forecast(progress) => self.forecast_portion(progress),
            LongCommand::Kick(progress) => self.kick_portion(now, progress, out),
            LongCommand::List(progress) => self.list_portion(now, progress),
            LongCommand::Peek(progress) => self.peek_portion(now, progress),
            LongCommand::ReviveTopic(progress) => self.revive_portion(now, progress, out),
            LongCommand::Stats(progress) => self.stats_portion(now, progress),
            LongCommand::Topics(progress) => self.topics_portion(now, progress),
        };
        let answer = match answered(portion)? {
            Ok(Portion::More(command)) => return Ok(Some(command)),
            Ok(Portion::Done(reply)) => Ok(reply),
            Err(error) => Err(error),
        };
        out.answers.push((ticket, answer, When::Durable));
        Ok(None)
    }
}

fn too_many_long() -> Error {
    Error::new(
        Code::Busy,
        format!("{LONG_COMMANDS_MAX} long commands are under way, the limit; try again later"),
    )
}
