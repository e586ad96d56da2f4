//! kick-job: makes a given buried or delayed job ready.

use bytes::BytesMut;
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, State};
use dormouse_core::op::{ChangeReply, Reschedule, Revive, Target};

use super::PendingReply;
use crate::beanstalk::{Beanstalk, reply};
use crate::pipeline::{Next, Request, Turn};

impl Beanstalk {
    pub(super) fn kick_job(id: JobId, turn: &mut Turn<PendingReply>) {
        turn.send_last(Request::new(Revive(vec![Target::Id(id)]), PendingReply::KickedJob(id)));
    }

    /// A delayed job cannot be revived; it is rescheduled to run now.
    pub(super) fn kicked_job(
        id: JobId,
        changed: Result<ChangeReply, Error>,
        out: &mut BytesMut,
    ) -> Next<PendingReply> {
        match changed {
            Ok(_) => out.extend_from_slice(reply::KICKED),
            Err(Error { job: Some((_, State::Delayed)), .. }) => {
                let run = Reschedule { target: Target::Id(id), delay_ms: None, at_ms: None };
                return Some(Request::new(run, PendingReply::Ran));
            }
            Err(error) => reply::error(&error, out),
        }
        None
    }

    pub(super) fn ran(changed: Result<ChangeReply, Error>, out: &mut BytesMut) {
        match changed {
            Ok(_) => out.extend_from_slice(reply::KICKED),
            Err(error) => reply::error(&error, out),
        }
    }
}
