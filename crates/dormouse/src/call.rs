//! An operation and its options, before it is sent.

use std::fmt;
use std::future::IntoFuture;

use dormouse_core::error::Error;

use crate::pending::Pending;
use crate::queue::Queue;

/// The replies to a batch, item by item, in the order of the requests.
pub type Items<T> = Vec<Result<T, Error>>;

/// An operation that has not been sent yet.
///
/// Set its options, then `.await` it, block with [`wait`](Call::wait), or start it with
/// [`send`](Call::send). Invalid input, a bad topic name for example, is its answer, and nothing is
/// sent.
#[must_use = "nothing is sent until it is awaited, waited for or sent"]
pub struct Call<O, T> {
    queue: Queue,
    options: Result<O, Error>,
    send: fn(&Queue, O) -> Pending<T>,
}

impl<O, T> Call<O, T> {
    pub(crate) fn new(
        queue: &Queue,
        options: Result<O, Error>,
        send: fn(&Queue, O) -> Pending<T>,
    ) -> Call<O, T> {
        Call { queue: queue.clone(), options, send }
    }

    pub(crate) fn set(mut self, change: impl FnOnce(&mut O)) -> Call<O, T> {
        if let Ok(options) = &mut self.options {
            change(options);
        }
        self
    }

    pub(crate) fn into_parts(self) -> (Queue, Result<O, Error>) {
        (self.queue, self.options)
    }

    /// Sends it now; the answer can be read later or ignored.
    pub fn send(self) -> Pending<T> {
        match self.options {
            Ok(options) => (self.send)(&self.queue, options),
            Err(error) => Pending::refused(error),
        }
    }

    /// Sends it and blocks the thread until it is answered.
    pub fn wait(self) -> Result<T, Error> {
        self.send().wait()
    }
}

impl<O, T> IntoFuture for Call<O, T> {
    type Output = Result<T, Error>;
    type IntoFuture = Pending<T>;

    fn into_future(self) -> Pending<T> {
        self.send()
    }
}

impl<O: fmt::Debug, T> fmt::Debug for Call<O, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&self.options).finish()
    }
}
