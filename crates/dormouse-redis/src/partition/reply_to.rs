//! Where the answer to an ask goes.

use std::fmt;

use dormouse_core::backend::Answer;
use dormouse_core::error::Error;
use tokio::sync::oneshot;

use crate::dispatch::Addressee;

/// Where the answer to an ask goes.
pub(crate) enum To<T> {
    /// Nobody wants to know.
    Nobody,
    /// A task of the desk that makes one answer of several, or asks on.
    Task(oneshot::Sender<Result<T, Error>>),
    /// Whoever made the request, in these words.
    Caller(Addressee, fn(Result<T, Error>) -> Answer),
}

impl<T> To<T> {
    /// Whoever does not hear it any more leaves it here.
    pub(crate) fn send(self, result: Result<T, Error>) -> Result<(), Result<T, Error>> {
        match self {
            To::Nobody => Err(result),
            To::Task(task) => task.send(result),
            To::Caller(caller, words) => {
                caller.answer(words(result));
                Ok(())
            }
        }
    }

    /// It is answered with this error; what comes of it nobody learns.
    pub(crate) fn fail(&mut self, error: Error) {
        // Who asked may have gone.
        let _unheard = std::mem::replace(self, To::Nobody).send(Err(error));
    }
}

impl<T> fmt::Debug for To<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            To::Nobody => "nobody",
            To::Task(_) => "a task",
            To::Caller(..) => "the caller",
        })
    }
}
