//! Shared by tests of the engine.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "not every test needs everything")]

pub(crate) mod gate;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::JobId;
use dormouse_core::op::{LeasedJob, Put, Reserve};
use dormouse_core::topic::TopicName;
use dormouse_disk::engine::Engine;

/// Long enough for any machine; a test that waits so long has failed.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Passes answers on.
struct Answers(Mutex<Sender<Answer>>);

impl Sink for Answers {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        for (_, answer) in answers.drain(..) {
            let _ = self.0.lock().unwrap().send(answer);
        }
    }
}

/// A sink that keeps the answers it gets.
pub(crate) fn sink() -> (Arc<dyn Sink>, Receiver<Answer>) {
    let (answers, arrived) = channel();
    (Arc::new(Answers(Mutex::new(answers))), arrived)
}

pub(crate) fn request(command: Command) -> Request {
    Request::new(Ticket::next(), command)
}

/// One request, one answer.
pub(crate) fn call(engine: &dyn Backend, command: Command) -> Answer {
    let (sink, arrived) = sink();
    engine.submit(vec![request(command)], sink)?;
    arrived.recv_timeout(TIMEOUT).expect("no answer")
}

pub(crate) fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

pub(crate) fn reserve_of(name: &str, max: usize) -> Command {
    let topics = vec![topic(name)];
    Command::Reserve(Reserve { topics, max, wait_ms: 0, ttr_ms: None, session: None })
}

pub(crate) fn put_one(engine: &Engine, put: Put) -> JobId {
    let Ok(Reply::Put(replies)) = call(engine, Command::Put(vec![put])) else { panic!("no put") };
    replies[0].as_ref().unwrap().id
}

pub(crate) fn reserve(engine: &Engine, name: &str, max: usize) -> Vec<LeasedJob> {
    let Ok(Reply::Jobs(jobs)) = call(engine, reserve_of(name, max)) else { panic!("no jobs") };
    jobs
}
