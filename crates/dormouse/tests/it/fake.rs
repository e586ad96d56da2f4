//! A backend that does nothing by itself: the test sees what was asked and answers by hand.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dormouse::core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse::core::command::{Command, Reply};
use dormouse::core::op::LeasedJob;
use dormouse::{BodyKind, Code, Error, JobId, Queue, Token, TopicName};

use crate::util::LONG;

#[derive(Default)]
pub(crate) struct Fake {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    asked: VecDeque<Submission>,
    /// How many submits answer `busy` first.
    busy: usize,
}

/// A request that waits for the test's answer.
pub(crate) struct Submission {
    pub(crate) ticket: Ticket,
    pub(crate) command: Command,
    sink: Arc<dyn Sink>,
}

impl Submission {
    pub(crate) fn answer(self, answer: Answer) {
        self.sink.deliver(&mut vec![(self.ticket, answer)]);
    }
}

impl Fake {
    pub(crate) fn queue() -> (Queue, Arc<Fake>) {
        let fake = Arc::new(Fake::default());
        (Queue::from_backend(fake.clone()), fake)
    }

    pub(crate) fn be_busy(&self, times: usize) {
        self.state.lock().unwrap().busy = times;
    }

    /// The next request, waited for.
    pub(crate) fn next(&self) -> Submission {
        let state = self.state.lock().unwrap();
        let quiet = |state: &mut State| state.asked.is_empty();
        let (mut state, _) = self.arrived.wait_timeout_while(state, LONG, quiet).unwrap();
        state.asked.pop_front().expect("something is asked")
    }

    /// Nothing was asked that the test has not seen. What comes from another thread gets a moment
    /// to show: this can miss a fault, and never invents one.
    pub(crate) fn assert_quiet(&self) {
        let state = self.state.lock().unwrap();
        let quiet = |state: &mut State| state.asked.is_empty();
        let moment = Duration::from_millis(20);
        let (state, _) = self.arrived.wait_timeout_while(state, moment, quiet).unwrap();
        let asked: Vec<_> = state.asked.iter().map(|asked| &asked.command).collect();
        assert!(asked.is_empty(), "nobody should have asked {asked:?}");
    }
}

impl Backend for Fake {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        let mut state = self.state.lock().unwrap();
        if state.busy > 0 {
            state.busy -= 1;
            return Err(Error::new(Code::Busy, "try again"));
        }
        for Request { ticket, command, .. } in batch {
            state.asked.push_back(Submission { ticket, command, sink: sink.clone() });
        }
        drop(state);
        self.arrived.notify_all();
        Ok(())
    }
}

/// A reply with one leased job.
pub(crate) fn one_job(id: u64) -> Reply {
    Reply::Jobs(vec![LeasedJob {
        topic: TopicName::new("t").unwrap(),
        id: JobId(id),
        key: None,
        token: token(id),
        attempt: 1,
        due_at: 0,
        put_at: 0,
        late_ms: 0,
        expires_at: 60_000,
        ttr_ms: 60_000,
        priority: 1_024,
        headers: None,
        body: Bytes::new(),
        body_kind: BodyKind::Bytes,
        tick: None,
        group: None,
        expires_after_ms: 0,
    }])
}

pub(crate) fn token(id: u64) -> Token {
    Token { id: JobId(id), fence: 7 }
}
