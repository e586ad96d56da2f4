//! Requests that wait: each with a connection and a thread, until it is answered or withdrawn.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use dormouse_core::backend::{Answer, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};

use super::backend::broken;
use super::park_observer::ParkObserver;
use super::pool::{Connection, Pool};

/// All requests that wait.
#[derive(Default)]
pub(super) struct Waiting {
    entries: Mutex<BTreeMap<Ticket, Entry>>,
    observer: Option<Arc<ParkObserver>>,
}

struct Entry {
    socket: TcpStream,
    sink: Arc<dyn Sink>,
    /// The answer if it is withdrawn.
    nothing: Answer,
}

/// A request that is about to wait.
pub(super) struct Begin<C, R> {
    pub(super) ticket: Ticket,
    pub(super) call: C,
    pub(super) nothing: Answer,
    /// Turns the response into the answer.
    pub(super) read: R,
    pub(super) sink: Arc<dyn Sink>,
}

/// The answer to a waiting request that is withdrawn.
pub(super) fn nothing(command: &Command) -> Answer {
    match command {
        Command::Lock(lock) => {
            let name = String::from_utf8_lossy(&lock.name);
            Err(Error::new(Code::Conflict, format!("lock {name:?} was not waited for any more")))
        }
        _ => Ok(Reply::Jobs(Vec::new())),
    }
}

impl Waiting {
    pub(super) fn new(observer: Option<Arc<ParkObserver>>) -> Waiting {
        Waiting { observer, ..Waiting::default() }
    }

    /// Sends a request and lets it wait; the answer goes to its sink.
    pub(super) fn begin<C: Connection, R>(
        self: &Arc<Waiting>,
        pool: &Arc<Pool<C>>,
        mut connection: C,
        begin: Begin<C::Call, R>,
    ) -> Result<(), Error>
    where
        R: FnOnce(Result<C::Response, Error>) -> Answer + Send + 'static,
    {
        let Begin { ticket, call, nothing, read, sink } = begin;
        let socket = connection.socket().map_err(|error| broken(&error))?;
        self.lock().insert(ticket, Entry { socket, sink, nothing });
        let arrived = self.observer.as_ref().map(|observer| {
            observer.open();
            observer.arrived()
        });
        let is_over = Arc::new(AtomicBool::new(false));
        let (waiting, pool, over) = (Arc::clone(self), Arc::clone(pool), Arc::clone(&is_over));
        thread::spawn(move || {
            let response = connection.exchange(&call).map_err(|error| broken(&error));
            let is_whole = response.is_ok();
            let answer = read(response);
            over.store(true, Ordering::Release);
            // A withdrawal closes the socket: then it cannot be used again.
            if waiting.end(ticket, |_| answer) && is_whole {
                pool.give_back(connection);
            }
        });
        if let (Some(observer), Some(arrived)) = (&self.observer, arrived) {
            observer.wait_for_arrival(arrived, || is_over.load(Ordering::Acquire));
        }
        Ok(())
    }

    /// Ends the wait, unless it is over.
    pub(super) fn withdraw(&self, ticket: Ticket) {
        self.end(ticket, |entry| {
            // A socket that is closed already needs no closing.
            let _ = entry.socket.shutdown(Shutdown::Both);
            entry.nothing.clone()
        });
    }

    /// Waits until every answer of the backend is delivered, where that can be known.
    pub(super) fn settle(&self) {
        if let Some(observer) = &self.observer {
            observer.settle();
        }
    }

    /// False = it had ended before.
    fn end(&self, ticket: Ticket, answer: impl FnOnce(&Entry) -> Answer) -> bool {
        let Some(entry) = self.lock().remove(&ticket) else { return false };
        entry.sink.deliver(&mut vec![(ticket, answer(&entry))]);
        if let Some(observer) = &self.observer {
            observer.close();
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Ticket, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
