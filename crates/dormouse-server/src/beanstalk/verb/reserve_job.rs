//! reserve-job: a given job, whatever its due time.

use bytes::BytesMut;
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::JobId;
use dormouse_core::op::{ReserveId, SessionId};

use super::{AfterOpen, PendingReply};
use crate::beanstalk::{Beanstalk, reply};
use crate::client::unexpected;
use crate::pipeline::{Step, Turn};

impl Beanstalk {
    pub(super) fn reserve_job(&mut self, id: JobId, turn: &mut Turn<PendingReply>) {
        turn.ask_last(self.with_session(AfterOpen::ReserveJob(id)));
    }

    pub(super) fn reserve_job_step(id: JobId, session: SessionId) -> Step<PendingReply> {
        let reserve = ReserveId { id, ttr_ms: None, session: Some(session) };
        Step::new(Command::ReserveId(reserve), PendingReply::Taken)
    }

    pub(super) fn taken(&mut self, answer: Answer, out: &mut BytesMut) {
        match answer {
            Ok(Reply::Jobs(jobs)) => match jobs.first() {
                Some(job) => {
                    self.becomes_worker();
                    self.hand_out(job, out);
                }
                None => out.extend_from_slice(reply::NOT_FOUND),
            },
            Ok(other) => reply::error(&unexpected(&other), out),
            Err(error) => reply::error(&error, out),
        }
    }
}
