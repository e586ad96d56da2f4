//! kick: buried jobs of the used tube to ready, or, if none is buried, delayed ones.

use bytes::BytesMut;
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Kick, ReviveTopic, Stats, TopicStats};
use dormouse_core::topic::TopicName;

use super::PendingReply;
use crate::beanstalk::{Beanstalk, reply};
use crate::client::unexpected;
use crate::pipeline::{Step, Turn};

/// A kick under way: the backend moves so many jobs at once and no more.
pub(crate) struct KickProgress {
    tube: TopicName,
    is_buried: bool,
    /// To be moved still.
    left: u64,
    moved: u64,
}

impl KickProgress {
    fn step(self) -> Step<PendingReply> {
        let max = self.most();
        let topic = self.tube.clone();
        let command = if self.is_buried {
            Command::ReviveTopic(ReviveTopic { topic, max })
        } else {
            Command::Kick(Kick { topic, max })
        };
        Step::new(command, PendingReply::Kicked(self))
    }

    /// Looks first how many there are: with others at work there might be no end.
    fn look(self) -> Step<PendingReply> {
        let stats = Stats { topic: Some(self.tube.clone()) };
        Step::new(Command::Stats(stats), PendingReply::Kicked(self))
    }

    /// Goes on with no more than are there now.
    fn seen(mut self, stats: &TopicStats) -> KickProgress {
        self.is_buried = stats.counts.dead > 0;
        let there = if self.is_buried { stats.counts.dead } else { stats.delayed };
        self.left = self.left.min(there);
        self
    }

    fn most(&self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX).min(BATCH_MAX)
    }
}

impl Beanstalk {
    pub(super) fn kick(&mut self, count: u64, turn: &mut Turn<PendingReply>) {
        if count == 0 {
            return reply::numbered("KICKED", 0, turn.say());
        }
        let tube = self.used.name.clone();
        let kicking = KickProgress { tube, is_buried: true, left: count, moved: 0 };
        let is_many = count > BATCH_MAX as u64;
        turn.ask_last(if is_many { kicking.look() } else { kicking.step() });
    }

    pub(super) fn kicked(
        mut kicking: KickProgress,
        answer: Answer,
        out: &mut BytesMut,
    ) -> Option<Step<PendingReply>> {
        let moved = match answer {
            Ok(Reply::Count(count)) => count,
            Ok(Reply::Stats(stats)) => {
                let kicking = kicking.seen(&stats);
                if kicking.left > 0 {
                    return Some(kicking.step());
                }
                reply::numbered("KICKED", 0, out);
                return None;
            }
            // A tube that is not there has nothing.
            Err(error) if error.code == Code::NotFound => {
                reply::numbered("KICKED", kicking.moved, out);
                return None;
            }
            Ok(other) => {
                reply::error(&unexpected(&other), out);
                return None;
            }
            Err(error) => {
                reply::error(&error, out);
                return None;
            }
        };
        let all_came = moved >= kicking.most() as u64;
        kicking.moved += moved;
        kicking.left = kicking.left.saturating_sub(moved);
        if all_came && kicking.left > 0 {
            return Some(kicking.step());
        }
        if kicking.is_buried && kicking.moved == 0 {
            return Some(KickProgress { is_buried: false, ..kicking }.step());
        }
        reply::numbered("KICKED", kicking.moved, out);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is asked for, and though there is always more to move.
    #[test]
    fn a_kick_ends() {
        let mut stats = TopicStats::default();
        (stats.counts.dead, stats.delayed) = (10_000, 7);
        let tube = TopicName::new("t").unwrap();
        let begun = KickProgress { tube, is_buried: true, left: u64::MAX, moved: 0 };
        let mut out = BytesMut::new();
        let mut next = Beanstalk::kicked(begun, Ok(Reply::Stats(stats)), &mut out);
        let mut portions = Vec::new();
        while let Some(Step { command: Command::ReviveTopic(revive), then, .. }) = next {
            let PendingReply::Kicked(kicking) = then else { panic!("it is a kick") };
            portions.push(revive.max);
            next = Beanstalk::kicked(kicking, Ok(Reply::Count(revive.max as u64)), &mut out);
        }
        assert_eq!(portions, [BATCH_MAX, BATCH_MAX, 10_000 - 2 * BATCH_MAX]);
        assert_eq!(out, "KICKED 10000\r\n");
    }
}
