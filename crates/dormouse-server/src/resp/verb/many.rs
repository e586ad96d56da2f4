//! Revive, kick and release of a topic: more jobs than one command may change are changed in
//! portions, so that other connections are served in between.

use dormouse_core::command::Command;
use dormouse_core::error::{Code, Error};
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Kick, ReleaseTopic, ReviveTopic, Stats, TopicStats};
use dormouse_core::topic::TopicName;

use super::{NextCommand, ReplyKind};
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::Args;
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;

/// Jobs of a topic that are changed in portions.
pub(in crate::resp) struct Many {
    topic: TopicName,
    action: Action,
    /// The most jobs that remain to be changed.
    missing: u64,
    done: u64,
}

#[derive(Clone, Copy)]
enum Action {
    Revive,
    Kick,
    Release,
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

    /// By operators, not by those who hold the leases: so the right is that to kick.
    pub(super) fn release(
        conn: &mut Conn,
        args: &mut Args<'_>,
        turn: &mut Turn<PendingReply>,
    ) -> Result<(), Error> {
        Many::begin(conn, args, turn, Verb::Kick, Action::Release)
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
        if missing <= BATCH_MAX as u64 {
            let first = many.portion();
            conn.send_last(turn, first, ReplyKind::Many(many));
        } else {
            // With producers at work there might be no end: only jobs that exist now count.
            let size = Stats { topic: Some(many.topic.clone()) };
            conn.send_last(turn, size, ReplyKind::ManySize(many));
        }
        Ok(())
    }

    fn portion(&mut self) -> Command {
        let max = self.missing.min(BATCH_MAX as u64);
        self.missing -= max;
        let (topic, max) = (self.topic.clone(), max as usize);
        match self.action {
            Action::Revive => Command::ReviveTopic(ReviveTopic { topic, max }),
            Action::Kick => Command::Kick(Kick { topic, max }),
            Action::Release => Command::ReleaseTopic(ReleaseTopic { topic, max }),
        }
    }

    /// Takes the size of the topic, and sends for the first portion.
    pub(super) fn on_size(
        mut self: Box<Self>,
        out: &mut Out<'_>,
        stats: Result<TopicStats, Error>,
    ) -> NextCommand {
        if let Some(stats) = existing(stats)? {
            self.missing = self.missing.min(self.there(&stats));
            return self.go_on(out);
        }
        self.finish(out)
    }

    /// Takes the number of jobs that a portion changed, and sends for the next portion.
    pub(super) fn on_portion(
        mut self: Box<Self>,
        out: &mut Out<'_>,
        count: Result<u64, Error>,
    ) -> NextCommand {
        let count = existing(count)?.unwrap_or(0);
        self.done += count;
        if count < BATCH_MAX as u64 { self.finish(out) } else { self.go_on(out) }
    }

    fn go_on(mut self: Box<Self>, out: &mut Out<'_>) -> NextCommand {
        if self.missing == 0 {
            return self.finish(out);
        }
        let next = self.portion();
        Ok(Some((next, ReplyKind::Many(self))))
    }

    fn finish(&self, out: &mut Out<'_>) -> NextCommand {
        out.number(self.done);
        Ok(None)
    }

    fn there(&self, stats: &TopicStats) -> u64 {
        match self.action {
            Action::Revive => stats.counts.dead,
            Action::Kick => stats.delayed,
            Action::Release => stats.counts.leased,
        }
    }
}

/// A topic that does not exist has no jobs.
fn existing<T>(reply: Result<T, Error>) -> Result<Option<T>, Error> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
