//! Where the reply to a partition request goes.

use std::fmt;

use dormouse_core::backend::Answer;
use dormouse_core::error::Error;
use tokio::sync::oneshot;

use crate::outbox::Caller;

pub(crate) enum ReplyTo<T> {
    /// No one reads it.
    Discard,
    /// To the task of a command, which merges several replies or sends further requests.
    Task(oneshot::Sender<Result<T, Error>>),
    /// Straight to the caller, converted by this function.
    Caller(Caller, fn(Result<T, Error>) -> Answer),
}

impl<T> ReplyTo<T> {
    /// Sends the result, or gives it back if no one receives it.
    pub(crate) fn send(self, result: Result<T, Error>) -> Result<(), Result<T, Error>> {
        match self {
            ReplyTo::Discard => Err(result),
            ReplyTo::Task(task) => task.send(result),
            ReplyTo::Caller(caller, convert) => {
                caller.answer(convert(result));
                Ok(())
            }
        }
    }

    /// Answers with an error. A later result goes to no one.
    pub(crate) fn fail(&mut self, error: Error) {
        // The receiver may be gone.
        let _unheard = std::mem::replace(self, ReplyTo::Discard).send(Err(error));
    }
}

impl<T> fmt::Debug for ReplyTo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReplyTo::Discard => "discard",
            ReplyTo::Task(_) => "a task",
            ReplyTo::Caller(..) => "the caller",
        })
    }
}
