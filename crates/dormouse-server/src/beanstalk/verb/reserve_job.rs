//! reserve-job: reserves a given job, regardless of its due time.

use bytes::BytesMut;
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::op::{LeasedJob, ReserveId, SessionId};

use super::{AfterOpen, PendingReply};
use crate::beanstalk::{Beanstalk, reply};
use crate::pipeline::{Request, Turn};

impl Beanstalk {
    pub(super) fn reserve_job(&mut self, id: JobId, turn: &mut Turn<PendingReply>) {
        turn.send_last(self.with_session(AfterOpen::ReserveJob(id)));
    }

    pub(super) fn reserve_job_step(id: JobId, session: SessionId) -> Request<PendingReply> {
        let reserve = ReserveId { id, ttr_ms: None, session: Some(session) };
        Request::new(reserve, PendingReply::ReservedJob)
    }

    pub(super) fn reserved_job(&mut self, job: Result<LeasedJob, Error>, out: &mut BytesMut) {
        match job {
            Ok(job) => {
                self.becomes_worker();
                self.deliver(&job, out);
            }
            Err(error) => reply::error(&error, out),
        }
    }
}
