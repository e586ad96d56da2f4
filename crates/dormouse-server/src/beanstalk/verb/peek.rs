//! peek, peek-ready, peek-delayed, peek-buried: shows a job without reserving it.

use bytes::BytesMut;
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, State};
use dormouse_core::op::{Get, JobView, Peek, Target};

use super::PendingReply;
use crate::beanstalk::{Beanstalk, reply};
use crate::pipeline::{Request, Turn};

impl Beanstalk {
    pub(super) fn peek(id: JobId, turn: &mut Turn<PendingReply>) {
        turn.send_last(Request::new(Get(vec![Target::Id(id)]), PendingReply::Found));
    }

    /// Of the tube that the connection uses.
    pub(super) fn peek_next(&self, state: State, turn: &mut Turn<PendingReply>) {
        let peek = Peek { topic: self.used.name.clone(), state };
        turn.send_last(Request::new(peek, PendingReply::Peeked));
    }

    pub(super) fn found(&mut self, view: Result<JobView, Error>, out: &mut BytesMut) {
        match view {
            Ok(view) => self.show(&view, out),
            Err(error) => reply::error(&error, out),
        }
    }

    pub(super) fn peeked(&mut self, view: Result<Option<JobView>, Error>, out: &mut BytesMut) {
        match view {
            Ok(Some(view)) => self.show(&view, out),
            Ok(None) => out.extend_from_slice(reply::NOT_FOUND),
            Err(error) => reply::error(&error, out),
        }
    }

    fn show(&mut self, view: &JobView, out: &mut BytesMut) {
        self.recent.note(view.job.id, &view.topic);
        reply::job("FOUND", view.job.id, &view.job.content.body, out);
    }
}
