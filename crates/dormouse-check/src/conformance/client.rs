//! A synchronous client: one command or a batch in, the answers out.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::command::Command;

/// Longer than any answer takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where answers are kept until they are asked for.
#[derive(Default)]
struct Mailbox {
    answers: Mutex<HashMap<Ticket, Answer>>,
    arrived: Condvar,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, HashMap<Ticket, Answer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Mailbox {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        let mut kept = self.lock();
        for (ticket, answer) in answers.drain(..) {
            let before = kept.insert(ticket, answer);
            assert!(before.is_none(), "{ticket:?} was answered twice, first with {before:?}");
        }
        drop(kept);
        self.arrived.notify_all();
    }
}

/// A request that was handed over and not asked for its answer yet.
pub struct Pending {
    ticket: Ticket,
    asked: Command,
    mailbox: Arc<Mailbox>,
}

impl Pending {
    /// Its ticket.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Whether the answer is there. A `no` means something only after the answer to a later
    /// command, because answers leave in the order the backend found them.
    pub fn is_answered(&self) -> bool {
        self.mailbox.lock().contains_key(&self.ticket)
    }

    /// Waits until the answer has arrived.
    pub fn await_answer(&self) {
        let is_missing = |answers: &mut HashMap<_, _>| !answers.contains_key(&self.ticket);
        let waited =
            self.mailbox.arrived.wait_timeout_while(self.mailbox.lock(), TIMEOUT, is_missing);
        let timeout = waited.unwrap_or_else(PoisonError::into_inner).1;
        assert!(!timeout.timed_out(), "{:?} got no answer: {:?}", self.ticket, self.asked);
    }

    /// Waits for the answer.
    pub fn wait(self) -> Answer {
        let answers = self.mailbox.lock();
        let is_missing = |answers: &mut HashMap<_, _>| !answers.contains_key(&self.ticket);
        let waited = self.mailbox.arrived.wait_timeout_while(answers, TIMEOUT, is_missing);
        let mut answers = waited.unwrap_or_else(PoisonError::into_inner).0;
        answers
            .remove(&self.ticket)
            .unwrap_or_else(|| panic!("{:?} got no answer: {:?}", self.ticket, self.asked))
    }
}

/// See the module.
#[derive(Clone)]
pub struct Client {
    backend: Arc<dyn Backend>,
    mailbox: Arc<Mailbox>,
}

impl Client {
    /// A client of this backend.
    pub fn new(backend: Arc<dyn Backend>) -> Client {
        Client { backend, mailbox: Arc::default() }
    }

    /// Hands commands over as one batch, without waiting for the answers.
    pub fn send_all(&self, commands: Vec<Command>) -> Vec<Pending> {
        let mut pending = Vec::with_capacity(commands.len());
        let mut batch = Vec::with_capacity(commands.len());
        for command in commands {
            let ticket = Ticket::next();
            let asked = command.clone();
            pending.push(Pending { ticket, asked, mailbox: Arc::clone(&self.mailbox) });
            batch.push(Request::new(ticket, command));
        }
        let sink: Arc<dyn Sink> = Arc::clone(&self.mailbox) as Arc<dyn Sink>;
        self.backend.submit(batch, sink).expect("the backend takes the batch");
        pending
    }

    /// Hands one command over, without waiting for its answer.
    pub fn send(&self, command: Command) -> Pending {
        self.send_all(vec![command]).remove(0)
    }

    /// Hands one command over and waits for its answer.
    pub fn ask(&self, command: Command) -> Answer {
        self.send(command).wait()
    }
}
