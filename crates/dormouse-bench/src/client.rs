//! A client in the same process: sends commands, receives answers.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{Reserve, Stats, TopicStats};
use dormouse_core::topic::TopicName;
use dormouse_disk::engine::Engine;

use crate::Result;

/// No answer takes longer, unless something is wrong.
const TIMEOUT: Duration = Duration::from_secs(120);

/// An answer, and when it arrived.
pub(crate) struct Answered {
    pub(crate) ticket: Ticket,
    pub(crate) reply: Reply,
    pub(crate) at: Instant,
}

struct Mailbox(Sender<(Ticket, Answer, Instant)>);

impl Sink for Mailbox {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        let at = Instant::now();
        for (ticket, answer) in answers.drain(..) {
            // The client is gone: so is its interest.
            let _ = self.0.send((ticket, answer, at));
        }
    }
}

/// One thread's connection to a backend.
pub(crate) struct Client {
    backend: Arc<dyn Backend>,
    sink: Arc<Mailbox>,
    answers: Receiver<(Ticket, Answer, Instant)>,
}

impl Client {
    pub(crate) fn new(engine: &Engine) -> Client {
        Client::over(Arc::new(engine.clone()))
    }

    pub(crate) fn over(backend: Arc<dyn Backend>) -> Client {
        let (sender, answers) = channel();
        Client { backend, sink: Arc::new(Mailbox(sender)), answers }
    }

    /// Sends one command.
    pub(crate) fn send(&self, command: Command) -> Result<Ticket> {
        let ticket = Ticket::next();
        self.submit(vec![Request::new(ticket, command)])?;
        Ok(ticket)
    }

    /// Sends two commands that the backend applies together.
    pub(crate) fn send_both(&self, first: Command, second: Command) -> Result<(Ticket, Ticket)> {
        let tickets = (Ticket::next(), Ticket::next());
        self.submit(vec![Request::new(tickets.0, first), Request::new(tickets.1, second)])?;
        Ok(tickets)
    }

    fn submit(&self, requests: Vec<Request>) -> Result<()> {
        Ok(self.backend.submit(requests, Arc::clone(&self.sink) as Arc<dyn Sink>)?)
    }

    /// The next answer.
    pub(crate) fn receive(&self) -> Result<Answered> {
        let received = self.answers.recv_timeout(TIMEOUT);
        opened(received.map_err(|_| format!("the backend gave no answer within {TIMEOUT:?}"))?)
    }

    /// The next answer, if it is there already.
    pub(crate) fn receive_now(&self) -> Result<Option<Answered>> {
        self.answers.try_recv().ok().map(opened).transpose()
    }

    /// Sends a command and waits for its answer; nothing else may be on its way.
    pub(crate) fn call(&self, command: Command) -> Result<Reply> {
        let ticket = self.send(command)?;
        let answered = self.receive()?;
        if answered.ticket == ticket {
            Ok(answered.reply)
        } else {
            Err("the backend answered something that was not asked".into())
        }
    }

    /// Counts over all topics.
    pub(crate) fn stats(&self) -> Result<TopicStats> {
        match self.call(Command::Stats(Stats { topic: None }))? {
            Reply::Stats(stats) => Ok(*stats),
            other => Err(unexpected("stats", &other)),
        }
    }
}

fn opened((ticket, answer, at): (Ticket, Answer, Instant)) -> Result<Answered> {
    Ok(Answered { ticket, reply: answer?, at })
}

/// Take up to `max` jobs of these topics, each for its own time.
pub(crate) fn reserve(topics: Vec<TopicName>, max: usize, wait_ms: i64) -> Command {
    Command::Reserve(Reserve { topics, max, wait_ms, ttr_ms: None, session: None })
}

/// The error for an answer of the wrong kind.
pub(crate) fn unexpected(asked: &str, reply: &Reply) -> Box<dyn std::error::Error + Send + Sync> {
    let shown: String = format!("{reply:?}").chars().take(200).collect();
    format!("{asked} was answered with {shown}").into()
}
