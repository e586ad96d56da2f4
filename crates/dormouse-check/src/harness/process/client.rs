//! A thread's connection to its backend, and where all threads tell what they did.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dormouse_core::backend::{self, Backend, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;

use crate::checker::event::Event;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The wall clock.
pub fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Events in their order.
pub struct Log(Mutex<Place>);

enum Place {
    /// Lines to the parent.
    Pipe(File),
    /// This process is not the one that is killed.
    Memory(Vec<Event>),
}

impl Log {
    /// To stdout, without a buffer: an event must not be lost with the process.
    pub fn pipe() -> io::Result<Log> {
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Log(Mutex::new(Place::Pipe(File::from(stdout)))))
    }

    /// Kept here.
    pub fn memory() -> Log {
        Log(Mutex::new(Place::Memory(Vec::new())))
    }

    /// Tells events, in one write.
    pub fn tell(&self, events: &[Event]) -> io::Result<()> {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Place::Pipe(file) => {
                let mut lines = Vec::new();
                for event in events {
                    serde_json::to_writer(&mut lines, event)?;
                    lines.push(b'\n');
                }
                file.write_all(&lines)
            }
            Place::Memory(kept) => {
                kept.extend_from_slice(events);
                Ok(())
            }
        }
    }

    /// The events kept in memory.
    pub fn into_events(self) -> Vec<Event> {
        match self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Place::Pipe(_) => Vec::new(),
            Place::Memory(events) => events,
        }
    }
}

struct Mailbox(Sender<(Ticket, backend::Answer)>);

impl Sink for Mailbox {
    fn deliver(&self, answers: &mut Vec<(Ticket, backend::Answer)>) {
        for answer in answers.drain(..) {
            // The client is gone: so is its interest.
            let _ = self.0.send(answer);
        }
    }
}

/// One thread's connection.
pub struct Client {
    backend: Arc<dyn Backend>,
    sink: Arc<Mailbox>,
    answers: Receiver<(Ticket, backend::Answer)>,
}

impl Client {
    /// A connection of its own.
    pub fn new(backend: &Arc<dyn Backend>) -> Client {
        let (sender, answers) = channel();
        Client { backend: Arc::clone(backend), sink: Arc::new(Mailbox(sender)), answers }
    }

    /// Makes calls as one batch and waits for all answers, in the order of the calls.
    pub fn call(&self, commands: Vec<Command>) -> Result<Vec<Result<Reply, Error>>, Error> {
        let requests: Vec<Request> =
            commands.into_iter().map(|command| Request::new(Ticket::next(), command)).collect();
        let tickets: Vec<Ticket> = requests.iter().map(|request| request.ticket).collect();
        self.backend.submit(requests, Arc::clone(&self.sink) as Arc<dyn Sink>)?;
        let mut answers: Vec<Option<backend::Answer>> = tickets.iter().map(|_| None).collect();
        for _ in &tickets {
            let received = self.answers.recv_timeout(TIMEOUT);
            let (ticket, answer) =
                received.map_err(|_| Error::unavailable("no answer within a minute"))?;
            if let Some(at) = tickets.iter().position(|waiting| *waiting == ticket) {
                answers[at] = Some(answer);
            }
        }
        let twice = || Err(Error::unavailable("a call was answered twice, another one not at all"));
        Ok(answers.into_iter().map(|answer| answer.unwrap_or_else(twice)).collect())
    }

    /// Begins a call; nothing else may be asked before it is left.
    pub fn begin(&self, command: Command) -> Result<Ticket, Error> {
        let ticket = Ticket::next();
        let sink = Arc::clone(&self.sink) as Arc<dyn Sink>;
        self.backend.submit(vec![Request::new(ticket, command)], sink)?;
        Ok(ticket)
    }

    /// Goes away from a call that was begun; its answer, if it was there before.
    pub fn leave(&self, ticket: Ticket) -> Result<backend::Answer, Error> {
        let sink = Arc::clone(&self.sink) as Arc<dyn Sink>;
        let command = Command::Withdraw(ticket);
        self.backend.submit(vec![Request::new(Ticket::next(), command)], sink)?;
        let mut left = None;
        for _ in 0..2 {
            let received = self.answers.recv_timeout(TIMEOUT);
            let (of, answer) =
                received.map_err(|_| Error::unavailable("no answer within a minute"))?;
            if of == ticket {
                left = Some(answer);
            }
        }
        left.ok_or_else(|| Error::unavailable("a call that was left has no answer"))
    }

    /// Makes one call.
    pub fn call_one(&self, command: Command) -> Result<Reply, Error> {
        self.call(vec![command])?.pop().unwrap_or_else(|| Err(Error::unavailable("no answer")))
    }
}
