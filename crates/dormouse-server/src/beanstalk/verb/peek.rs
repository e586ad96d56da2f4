//! peek, peek-ready, peek-delayed, peek-buried: a job without reserving it.

use bytes::BytesMut;
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::{JobId, State};
use dormouse_core::op::{JobView, Peek, Target};

use super::{Then, one};
use crate::beanstalk::{Beanstalk, words};
use crate::desk::unexpected;
use crate::pipeline::{Step, Turn};

impl Beanstalk {
    pub(super) fn peek(id: JobId, turn: &mut Turn<Then>) {
        turn.ask_last(Step::new(Command::Get(vec![Target::Id(id)]), Then::Found));
    }

    /// Of the tube that the connection uses.
    pub(super) fn peek_next(&self, state: State, turn: &mut Turn<Then>) {
        let peek = Peek { topic: self.used.name.clone(), state };
        turn.ask_last(Step::new(Command::Peek(peek), Then::PeekedAt));
    }

    pub(super) fn found(&mut self, answer: Answer, out: &mut BytesMut) {
        match one!(answer, Views) {
            Ok(view) => self.show(&view, out),
            Err(error) => words::error(&error, out),
        }
    }

    pub(super) fn peeked_at(&mut self, answer: Answer, out: &mut BytesMut) {
        match answer {
            Ok(Reply::View(Some(view))) => self.show(&view, out),
            Ok(Reply::View(None)) => out.extend_from_slice(words::NOT_FOUND),
            Ok(other) => words::error(&unexpected(&other), out),
            Err(error) => words::error(&error, out),
        }
    }
    fn show(&mut self, view: &JobView, out: &mut BytesMut) {
        self.recent.note(view.job.id, &view.topic);
        words::job("FOUND", view.job.id, &view.job.content.body, out);
    }
}
