//! What revive and kick of a topic share: more than one command may do, one after the other, so
//! that others get their turn in between.

use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Kick, ReviveTopic, Stats, TopicStats};
use dormouse_core::topic::TopicName;

use super::{Next, ReplyKind};
use crate::access::Verb;
use crate::client::unexpected;
use crate::pipeline::Turn;
use crate::resp::args::Args;
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;

/// Jobs of a topic, to be done in portions.
pub(in crate::resp) struct Many {
    topic: TopicName,
    action: Action,
    /// At most so many more.
    missing: u64,
    done: u64,
}

#[derive(Clone, Copy)]
enum Action {
    Revive,
    Kick,
}

impl Many {
    pub(super) fn revive(
        conn: &mut Conn,
        args: &mut Args<'_>,
        turn: &mut Turn<PendingReply>,
    ) -> Result<(), Error> {
        Many::begin(conn, args, turn, Verb::Revive, Action::Revive)
    }

    pub(super) fn kick(
        conn: &mut Conn,
        args: &mut Args<'_>,
        turn: &mut Turn<PendingReply>,
    ) -> Result<(), Error> {
        Many::begin(conn, args, turn, Verb::Kick, Action::Kick)
    }

    /// Reads `topic MAX n` or `topic ALL`.
    fn begin(
        conn: &mut Conn,
        args: &mut Args<'_>,
        turn: &mut Turn<PendingReply>,
        verb: Verb,
        action: Action,
    ) -> Result<(), Error> {
        let topic = conn.topic(verb, args.must("topic")?)?;
        let missing = match args.take("ALL") {
            true => u64::MAX,
            false if args.take("MAX") => args.number("MAX")?,
            false => return args.finish(&["MAX", "ALL"]),
        };
        args.finish(&[])?;
        let mut many = Box::new(Many { topic, action, missing, done: 0 });
        // With producers at work there might be no end: only jobs that are there now count.
        let first = match missing {
            missing if missing <= BATCH_MAX as u64 => many.portion(),
            _ => Command::Stats(Stats { topic: Some(many.topic.clone()) }),
        };
        conn.ask_last(turn, first, ReplyKind::Many(many));
        Ok(())
    }

    fn portion(&mut self) -> Command {
        let max = self.missing.min(BATCH_MAX as u64);
        self.missing -= max;
        let (topic, max) = (self.topic.clone(), max as usize);
        match self.action {
            Action::Revive => Command::ReviveTopic(ReviveTopic { topic, max }),
            Action::Kick => Command::Kick(Kick { topic, max }),
        }
    }

    /// Takes what a portion came to, and asks for the next.
    pub(super) fn go_on(mut self: Box<Self>, out: &mut Out<'_>, answer: Answer) -> Next {
        let is_done = match answer {
            Ok(Reply::Stats(stats)) => {
                self.missing = self.missing.min(self.there(&stats));
                false
            }
            Ok(Reply::Count(count)) => {
                self.done += count;
                count < BATCH_MAX as u64
            }
            // A topic that is not there has nothing.
            Err(error) if error.code == Code::NotFound => true,
            Err(error) => return Err(error),
            Ok(other) => return Err(unexpected(&other)),
        };
        if is_done || self.missing == 0 {
            out.number(self.done);
            return Ok(None);
        }
        let next = self.portion();
        Ok(Some((next, ReplyKind::Many(self))))
    }

    fn there(&self, stats: &TopicStats) -> u64 {
        match self.action {
            Action::Revive => stats.counts.dead,
            Action::Kick => stats.delayed,
        }
    }
}
