//! kick-job: a given buried or delayed job to ready.

use bytes::BytesMut;
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, State};
use dormouse_core::op::{ChangeReply, Reschedule, Target};

use super::{PendingReply, one};
use crate::beanstalk::{Beanstalk, reply};
use crate::pipeline::{Step, Turn};

impl Beanstalk {
    pub(super) fn kick_job(id: JobId, turn: &mut Turn<PendingReply>) {
        turn.ask_last(Step::new(
            Command::Revive(vec![Target::Id(id)]),
            PendingReply::KickedJob(id),
        ));
    }

    /// One that is delayed is in the way of a revive; then it is to run now.
    pub(super) fn kicked_job(
        id: JobId,
        answer: Answer,
        out: &mut BytesMut,
    ) -> Option<Step<PendingReply>> {
        match changed(answer) {
            Ok(_) => out.extend_from_slice(reply::KICKED),
            Err(Error { job: Some((_, State::Delayed)), .. }) => {
                let run = Reschedule { target: Target::Id(id), delay_ms: None, at_ms: None };
                return Some(Step::new(Command::Reschedule(vec![run]), PendingReply::Ran));
            }
            Err(error) => reply::error(&error, out),
        }
        None
    }

    pub(super) fn ran(answer: Answer, out: &mut BytesMut) {
        match changed(answer) {
            Ok(_) => out.extend_from_slice(reply::KICKED),
            Err(error) => reply::error(&error, out),
        }
    }
}

fn changed(answer: Answer) -> Result<ChangeReply, Error> {
    one!(answer, Changed)
}
