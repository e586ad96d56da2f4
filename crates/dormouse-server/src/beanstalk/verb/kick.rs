//! kick: buried jobs of the used tube to ready, or, if none is buried, delayed ones.

use bytes::BytesMut;
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Kick, ReviveTopic};
use dormouse_core::topic::TopicName;

use super::Then;
use crate::beanstalk::{Beanstalk, words};
use crate::desk::unexpected;
use crate::pipeline::{Step, Turn};

/// A kick under way: the backend moves so many jobs at once and no more.
pub(crate) struct Kicking {
    tube: TopicName,
    is_buried: bool,
    /// To be moved still.
    left: u64,
    moved: u64,
}

impl Kicking {
    fn step(self) -> Step<Then> {
        let max = self.most();
        let topic = self.tube.clone();
        let command = if self.is_buried {
            Command::ReviveTopic(ReviveTopic { topic, max })
        } else {
            Command::Kick(Kick { topic, max })
        };
        Step::new(command, Then::Kicked(self))
    }

    fn most(&self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX).min(BATCH_MAX)
    }
}

impl Beanstalk {
    pub(super) fn kick(&mut self, count: u64, turn: &mut Turn<Then>) {
        if count == 0 {
            return words::numbered("KICKED", 0, turn.say());
        }
        let tube = self.used.name.clone();
        turn.ask_last(Kicking { tube, is_buried: true, left: count, moved: 0 }.step());
    }

    pub(super) fn kicked(
        mut kicking: Kicking,
        answer: Answer,
        out: &mut BytesMut,
    ) -> Option<Step<Then>> {
        let moved = match answer {
            Ok(Reply::Count(count)) => count,
            Ok(other) => {
                words::error(&unexpected(&other), out);
                return None;
            }
            Err(error) => {
                words::error(&error, out);
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
            return Some(Kicking { is_buried: false, ..kicking }.step());
        }
        words::numbered("KICKED", kicking.moved, out);
        None
    }
}
