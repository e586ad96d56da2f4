//! Commands to a backend, and their answers.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use dormouse_client::{ConnectOptions, RemoteBackend};
use dormouse_core::backend::{Answer, Backend, Request, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{Lock, Put, Reserve};
use dormouse_core::topic::TopicName;

use crate::fake::LONG;

/// Short times, for tests that wait for them.
pub(crate) fn quick() -> ConnectOptions {
    ConnectOptions {
        connect_timeout: Duration::from_millis(500),
        answer_timeout: Duration::from_millis(500),
        repeat_for: Duration::from_millis(500),
        ..ConnectOptions::default()
    }
}

/// An answer that will come.
pub(crate) struct Pending {
    pub(crate) ticket: Ticket,
    answers: Receiver<(Ticket, Answer)>,
}

impl Pending {
    pub(crate) fn answer(self) -> Answer {
        let (ticket, answer) = self.answers.recv_timeout(LONG).expect("an answer");
        assert_eq!(ticket, self.ticket);
        assert!(self.answers.recv_timeout(Duration::ZERO).is_err(), "answered twice");
        answer
    }

    /// The code of a refusal, and a part of its text.
    #[track_caller]
    pub(crate) fn refused(self, code: Code, part: &str) {
        let error = match self.answer() {
            Err(error) => error,
            Ok(Reply::Put(items)) => items.into_iter().find_map(Result::err).expect("an error"),
            Ok(Reply::Ended(items)) => items.into_iter().find_map(Result::err).expect("an error"),
            Ok(reply) => panic!("{reply:?}"),
        };
        assert_eq!(error.code, code, "{error}");
        assert!(error.text.contains(part), "{error} has no {part:?}");
    }

    /// The ids of jobs that were put.
    #[track_caller]
    pub(crate) fn ids(self) -> Vec<u64> {
        match self.answer() {
            Ok(Reply::Put(items)) => {
                items.into_iter().map(|item| item.expect("a job").id.0).collect()
            }
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn send(backend: &RemoteBackend, command: Command) -> Pending {
    let (sender, answers) = mpsc::channel();
    let ticket = Ticket::next();
    let request = Request::new(ticket, command);
    backend.submit(vec![request], Arc::new(sender)).expect("it is taken");
    Pending { ticket, answers }
}

pub(crate) fn topic() -> TopicName {
    TopicName::new("t").expect("a topic")
}

pub(crate) fn put() -> Command {
    Command::Put(vec![Put::new(topic(), "x")])
}

/// A put with a key that is taken for so long after the ack.
pub(crate) fn put_keyed(key_ttl_ms: Option<i64>) -> Command {
    Command::Put(vec![Put { key: Some("k".into()), key_ttl_ms, ..Put::new(topic(), "x") }])
}

/// A lock that is waited for.
pub(crate) fn lock(wait_ms: i64) -> Command {
    Command::Lock(Lock { name: "l".into(), owner: "o".into(), ttl_ms: 1_000, wait_ms })
}

pub(crate) fn ack() -> Command {
    Command::Ack(vec![Token { id: JobId(7), fence: 9 }])
}

pub(crate) fn reserve(wait_ms: i64) -> Command {
    Command::Reserve(Reserve {
        topics: vec![topic()],
        max: 1,
        wait_ms,
        ttr_ms: None,
        session: None,
    })
}
