//! Where the reply to a partition request goes.

use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use tokio::sync::oneshot;

use crate::outbox::Caller;

pub(crate) enum ReplyTo<T> {
    /// No one reads it.
    Discard,
    /// To the task of a command, which merges several replies or sends further requests.
    Task(oneshot::Sender<Result<T, Error>>),
    /// Straight to the caller, as this reply.
    Caller(Caller, fn(T) -> Reply),
}

impl<T> ReplyTo<T> {
    /// Sends the result, or gives it back if no one receives it.
    pub(crate) fn send(self, result: Result<T, Error>) -> Result<(), Result<T, Error>> {
        match self {
            ReplyTo::Discard => Err(result),
            ReplyTo::Task(task) => task.send(result),
            ReplyTo::Caller(caller, reply) => {
                caller.answer(result.map(reply));
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

impl<T> ReplyTo<Vec<Result<T, Error>>> {
    /// Answers each of so many items with an error. A later result goes to no one.
    pub(crate) fn fail_items(&mut self, items: usize, error: &Error) {
        let results = (0..items).map(|_| Err(error.clone())).collect();
        let _unheard = std::mem::replace(self, ReplyTo::Discard).send(Ok(results));
    }
}
