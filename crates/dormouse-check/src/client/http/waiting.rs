//! Requests that wait: each with a connection and a thread, until it is answered or withdrawn.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use dormouse_core::backend::{Answer, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};

use super::broken;
use super::client::{Call, Connection, Pool, Response};
use super::witness::Witness;

/// All requests that wait.
#[derive(Default)]
pub(super) struct Waiting {
    entries: Mutex<BTreeMap<Ticket, Entry>>,
    witness: Option<Arc<Witness>>,
}

struct Entry {
    socket: TcpStream,
    sink: Arc<dyn Sink>,
    /// What it is answered with if it is withdrawn.
    nothing: Answer,
}

/// A request that is about to wait.
pub(super) struct Begin<R> {
    pub(super) ticket: Ticket,
    pub(super) call: Call,
    pub(super) nothing: Answer,
    /// Turns the response into the answer.
    pub(super) read: R,
    pub(super) sink: Arc<dyn Sink>,
}

/// What a request that waits is answered with when it is withdrawn.
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
    pub(super) fn new(witness: Arc<Witness>) -> Waiting {
        Waiting { witness: Some(witness), ..Waiting::default() }
    }

    /// Sends a request and lets it wait; the answer goes to its sink.
    pub(super) fn begin<R>(
        self: &Arc<Waiting>,
        pool: &Arc<Pool>,
        mut connection: Connection,
        begin: Begin<R>,
    ) -> Result<(), Error>
    where
        R: FnOnce(Result<Response, Error>) -> Answer + Send + 'static,
    {
        let Begin { ticket, call, nothing, read, sink } = begin;
        let socket = connection.socket().map_err(|error| broken(&error))?;
        self.lock().insert(ticket, Entry { socket, sink, nothing });
        let came = self.witness.as_ref().map(|witness| {
            witness.open();
            witness.came()
        });
        let is_over = Arc::new(AtomicBool::new(false));
        let (waiting, pool, over) = (Arc::clone(self), Arc::clone(pool), Arc::clone(&is_over));
        thread::spawn(move || {
            let response = connection.exchange(&call).map_err(|error| broken(&error));
            let is_whole = response.is_ok();
            let answer = read(response);
            over.store(true, Ordering::Release);
            // Who withdraws closes the socket: then it is not for the next one.
            if waiting.end(ticket, |_| answer) && is_whole {
                pool.give_back(connection);
            }
        });
        if let (Some(witness), Some(came)) = (&self.witness, came) {
            witness.wait_for_arrival(came, || is_over.load(Ordering::Acquire));
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

    /// Waits until all that the backend has answered is delivered, where that can be known.
    pub(super) fn settle(&self) {
        if let Some(witness) = &self.witness {
            witness.settle();
        }
    }

    /// False = it had ended before.
    fn end(&self, ticket: Ticket, answer: impl FnOnce(&Entry) -> Answer) -> bool {
        let Some(entry) = self.lock().remove(&ticket) else { return false };
        entry.sink.deliver(&mut vec![(ticket, answer(&entry))]);
        if let Some(witness) = &self.witness {
            witness.close();
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Ticket, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
