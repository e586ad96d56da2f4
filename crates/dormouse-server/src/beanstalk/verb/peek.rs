//! peek, peek-ready, peek-delayed, peek-buried: a job without reserving it.

use bytes::BytesMut;
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::{JobId, State};
use dormouse_core::op::{JobView, Peek, Target};

use super::{PendingReply, one};
use crate::beanstalk::{Beanstalk, reply};
use crate::client::unexpected;
use crate::pipeline::{Step, Turn};

impl Beanstalk {
    pub(super) fn peek(id: JobId, turn: &mut Turn<PendingReply>) {
        turn.ask_last(Step::new(Command::Get(vec![Target::Id(id)]), PendingReply::Found));
    }

    /// Of the tube that the connection uses.
    pub(super) fn peek_next(&self, state: State, turn: &mut Turn<PendingReply>) {
        let peek = Peek { topic: self.used.name.clone(), state };
        turn.ask_last(Step::new(Command::Peek(peek), PendingReply::PeekedAt));
    }

    pub(super) fn found(&mut self, answer: Answer, out: &mut BytesMut) {
        match one!(answer, Views) {
            Ok(view) => self.show(&view, out),
            Err(error) => reply::error(&error, out),
        }
    }

    pub(super) fn peeked_at(&mut self, answer: Answer, out: &mut BytesMut) {
        match answer {
            Ok(Reply::View(Some(view))) => self.show(&view, out),
            Ok(Reply::View(None)) => out.extend_from_slice(reply::NOT_FOUND),
            Ok(other) => reply::error(&unexpected(&other), out),
            Err(error) => reply::error(&error, out),
        }
    }
    fn show(&mut self, view: &JobView, out: &mut BytesMut) {
        self.recent.note(view.job.id, &view.topic);
        reply::job("FOUND", view.job.id, &view.job.content.body, out);
    }
}
