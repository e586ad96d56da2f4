//! delete: an ack of a job that the connection holds, a cancel of one that nobody holds.

use bytes::BytesMut;
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::op::{Cancel, Ended, Target};
use dormouse_core::topic::TopicName;

use super::{Then, one};
use crate::beanstalk::holds::Hold;
use crate::beanstalk::house::up;
use crate::beanstalk::{Beanstalk, clock, words};
use crate::pipeline::{Step, Turn};

impl Beanstalk {
    pub(super) fn delete(&mut self, id: JobId, turn: &mut Turn<Then>) {
        if let Some(hold) = self.holds.take(id, clock::now()) {
            return turn.ack(hold.token, Then::Deleted(Box::new(hold)));
        }
        let cancel = Cancel { target: Target::Id(id), unless_leased: true };
        turn.ask(Step::new(Command::Cancel(vec![cancel]), Then::Cancelled(id)));
    }

    pub(super) fn deleted(&mut self, hold: Hold, ended: Result<Ended, Error>, out: &mut BytesMut) {
        match ended {
            Ok(Ended::Gone) => out.extend_from_slice(words::NOT_FOUND),
            Ok(Ended::Done | Ended::Dead) => {
                self.count_delete(&hold.topic);
                out.extend_from_slice(words::DELETED);
            }
            Err(error) => self.keep(hold, &error, out),
        }
    }

    pub(super) fn cancelled(&mut self, id: JobId, answer: Answer, out: &mut BytesMut) {
        match one!(answer, Changed) {
            Ok(_) => {
                self.recent.topic_of(id).iter().for_each(|topic| self.count_delete(topic));
                out.extend_from_slice(words::DELETED);
            }
            Err(error) => words::error(&error, out),
        }
    }

    fn count_delete(&self, topic: &TopicName) {
        if let Some(tube) = self.house.tubes.find(topic) {
            up(&tube.deletes);
        }
    }
}
