//! reserve-job: a given job, whatever its due time.

use bytes::BytesMut;
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::JobId;
use dormouse_core::op::{ReserveId, SessionId};

use super::{Goal, Then};
use crate::beanstalk::{Beanstalk, words};
use crate::desk::unexpected;
use crate::pipeline::{Step, Turn};

impl Beanstalk {
    pub(super) fn reserve_job(&mut self, id: JobId, turn: &mut Turn<Then>) {
        turn.ask_last(self.with_session(Goal::ReserveJob(id)));
    }

    pub(super) fn reserve_job_step(id: JobId, session: SessionId) -> Step<Then> {
        let reserve = ReserveId { id, ttr_ms: None, session: Some(session) };
        Step::new(Command::ReserveId(reserve), Then::Taken)
    }

    pub(super) fn taken(&mut self, answer: Answer, out: &mut BytesMut) {
        match answer {
            Ok(Reply::Jobs(jobs)) => match jobs.first() {
                Some(job) => {
                    self.becomes_worker();
                    self.hand_out(job, out);
                }
                None => out.extend_from_slice(words::NOT_FOUND),
            },
            Ok(other) => words::error(&unexpected(&other), out),
            Err(error) => words::error(&error, out),
        }
    }
}
