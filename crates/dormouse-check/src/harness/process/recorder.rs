//! Records the calls of one thread and their answers.

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::backend::{Backend, Ticket};
use dormouse_core::backoff::{Backoff, Delays};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{
    Cancel, ChangeReply, EndReply, Extend, LeasedJob, Nack, Put, PutOutcome, PutReply, Release,
    Reschedule, Reserve, Target,
};
use dormouse_core::topic::TopicName;

use crate::checker::event::{Answer, Ask, Event, Taken, Verb};
use crate::generate::body::{body, number_of};
use crate::harness::process::client::{Client, Log, wall_us};
use crate::harness::process::load::TOPICS;

/// Makes calls and tells them.
pub struct Recorder<'l> {
    client: Client,
    /// For calls that are left.
    aside: Client,
    log: &'l Log,
    next_call: u64,
    lists: bool,
    patient: bool,
}

impl<'l> Recorder<'l> {
    /// Calls of different threads have different names.
    pub fn new(backend: &Arc<dyn Backend>, log: &'l Log, thread: u64) -> Recorder<'l> {
        let (client, aside) = (Client::new(backend), Client::new(backend));
        Recorder { client, aside, log, next_call: thread << 32, lists: false, patient: false }
    }

    /// Calls of one kind become one command of many items.
    pub fn in_lists(self) -> Recorder<'l> {
        Recorder { lists: true, ..self }
    }

    /// A store that is away for a while is no failure: what was asked meanwhile is unknown.
    pub fn patient(self) -> Recorder<'l> {
        Recorder { patient: true, ..self }
    }

    /// Tells, calls, tells.
    pub fn call(&mut self, asks: Vec<Ask>) -> Result<Vec<Answer>, Error> {
        let first = self.next_call;
        let asked_for = asks.len();
        self.next_call += asked_for as u64;
        let commands = asks.iter().map(command).collect::<Result<_, _>>()?;
        let commands = if self.lists { listed(commands) } else { commands };
        let items: Vec<usize> = commands.iter().map(items).collect();
        let at_us = wall_us();
        let asked = asks.into_iter().zip(first..);
        self.tell(asked.map(|(ask, call)| Event::Asked { call, at_us, ask }).collect())?;
        let replies = match self.client.call(commands) {
            // Nothing was taken in.
            Err(error) if self.patient && error.code == Code::Busy => {
                items.iter().map(|_| Err(error.clone())).collect()
            }
            replies => replies?,
        };
        let at_us = wall_us();
        let mut answers = Vec::with_capacity(asked_for);
        for (reply, items) in replies.into_iter().zip(items) {
            answers.extend(self.answers(reply, items)?);
        }
        if answers.len() != asked_for {
            return Err(Error::unavailable(format!("{asked_for} calls, answers: {answers:?}")));
        }
        let told = answers.iter().cloned().zip(first..);
        self.tell(told.map(|(answer, call)| Event::Told { call, at_us, answer }).collect())?;
        Ok(answers)
    }

    /// Takes jobs.
    pub fn reserve(&mut self, max: usize, wait_ms: i64) -> Result<Vec<Taken>, Error> {
        match self.call(vec![Ask::Reserve { max, wait_ms }])?.pop() {
            Some(Answer::Jobs(jobs)) => Ok(jobs),
            other => Err(Error::unavailable(format!("reserve answered {other:?}"))),
        }
    }

    /// Tells and begins a call without waiting for its answer.
    pub fn begin(&mut self, ask: Ask) -> Result<Begun, Error> {
        let call = self.next_call;
        self.next_call += 1;
        let command = command(&ask)?;
        self.tell(vec![Event::Asked { call, at_us: wall_us(), ask: ask.clone() }])?;
        Ok(Begun { call, ticket: self.aside.begin(command)?, ask })
    }

    /// Goes away from a call. Only an answer with jobs was there before; whether the call did
    /// anything otherwise nobody knows, and nothing is recorded.
    pub fn leave(&mut self, begun: Begun) -> Result<Option<(Ask, Answer)>, Error> {
        let Begun { call, ticket, ask } = begun;
        let mut answers = self.answers(self.aside.leave(ticket)?, 1)?;
        let Some(answer @ Answer::Jobs(_)) = answers.pop() else { return Ok(None) };
        if answer == Answer::Jobs(Vec::new()) {
            return Ok(None);
        }
        self.tell(vec![Event::Told { call, at_us: wall_us(), answer: answer.clone() }])?;
        Ok(Some((ask, answer)))
    }

    /// The answers to a command, as they are recorded. A store that stopped is an error, and so is
    /// a call of which nobody knows whether it was done, unless this one is patient.
    fn answers(&self, reply: Result<Reply, Error>, items: usize) -> Result<Vec<Answer>, Error> {
        match reply {
            Ok(Reply::Put(items)) => self.each(items, put),
            Ok(Reply::Jobs(jobs)) => Ok(vec![Answer::Jobs(jobs.iter().map(taken).collect())]),
            Ok(Reply::Ended(items)) => self.each(items, ended),
            Ok(Reply::Extended(items)) => self.each(items, |_| Answer::Done),
            Ok(Reply::Changed(items)) => {
                self.each(items, |changed: ChangeReply| Answer::Changed(changed.id.0))
            }
            Ok(other) => Err(Error::unavailable(format!("a call was answered with {other:?}"))),
            Err(error) => Ok(vec![self.failed(error)?; items]),
        }
    }

    fn each<T>(
        &self,
        items: Vec<Result<T, Error>>,
        good: impl Fn(T) -> Answer,
    ) -> Result<Vec<Answer>, Error> {
        let told = |item: Result<T, Error>| match item {
            Ok(item) => Ok(good(item)),
            Err(error) => self.failed(error),
        };
        items.into_iter().map(told).collect()
    }

    fn failed(&self, error: Error) -> Result<Answer, Error> {
        match error.code {
            Code::Unavailable | Code::Unconfirmed if self.patient => Ok(Answer::Unknown),
            Code::Unavailable | Code::Unconfirmed | Code::Invalid => Err(error),
            code => Ok(Answer::Refused(code.as_str().to_owned())),
        }
    }

    fn tell(&self, events: Vec<Event>) -> Result<(), Error> {
        self.log.tell(&events).map_err(|error| Error::unavailable(error.to_string()))
    }
}

/// A call that goes on.
pub struct Begun {
    call: u64,
    ticket: Ticket,
    ask: Ask,
}

/// Commands of one item as one command of many, if they are all puts or all acks.
fn listed(commands: Vec<Command>) -> Vec<Command> {
    let (mut puts, mut acks) = (Vec::new(), Vec::new());
    for command in &commands {
        match command {
            Command::Put(items) => puts.extend_from_slice(items),
            Command::Ack(items) => acks.extend_from_slice(items),
            _ => {}
        }
    }
    match commands.len() {
        count if count == puts.len() => vec![Command::Put(puts)],
        count if count == acks.len() => vec![Command::Ack(acks)],
        _ => commands,
    }
}

/// A call as a command.
fn command(ask: &Ask) -> Result<Command, Error> {
    Ok(match ask {
        Ask::Put(put) => Command::Put(vec![Put {
            key: put.key.clone().map(Bytes::from),
            on_conflict: put.mode.on_conflict(),
            key_ttl_ms: Some(put.key_ttl_ms),
            delay_ms: put.delay_ms,
            at_ms: put.at_ms,
            ttr_ms: Some(put.ttr_ms),
            attempts_max: Some(put.attempts_max),
            priority: Some(put.priority),
            backoff: Some(Arc::new(Backoff::from(Delays::Fixed { delay_ms: 50 }))),
            ..Put::new(TopicName::new(&put.topic)?, body(put.number))
        }]),
        Ask::Reserve { max, wait_ms } => {
            let topics =
                TOPICS.iter().map(|name| TopicName::new(name)).collect::<Result<_, _>>()?;
            let (max, wait_ms) = (*max, *wait_ms);
            Command::Reserve(Reserve { topics, max, wait_ms, ttr_ms: None, session: None })
        }
        Ask::Token { verb, token: (id, fence), delay_ms, .. } => {
            let (token, delay_ms) = (Token { id: JobId(*id), fence: *fence }, *delay_ms);
            match verb {
                Verb::Ack => Command::Ack(vec![token]),
                Verb::Nack => {
                    let error = Some(Bytes::from_static(b"rig"));
                    Command::Nack(vec![Nack { token, delay_ms, priority: None, error }])
                }
                Verb::Release => {
                    Command::Release(vec![Release { token, delay_ms: None, priority: None }])
                }
                Verb::Extend => Command::Extend(vec![Extend { token, ttr_ms: None }]),
            }
        }
        Ask::CancelId(id) => cancel(Target::Id(JobId(*id))),
        Ask::CancelKey { topic, key } => {
            cancel(Target::Key { topic: TopicName::new(topic)?, key: Bytes::from(key.clone()) })
        }
        Ask::Reschedule { id, delay_ms } => Command::Reschedule(vec![Reschedule {
            target: Target::Id(JobId(*id)),
            delay_ms: Some(*delay_ms),
            at_ms: None,
        }]),
    })
}

fn cancel(target: Target) -> Command {
    Command::Cancel(vec![Cancel { target, unless_leased: false }])
}

/// How many answers a command gets.
fn items(command: &Command) -> usize {
    match command {
        Command::Put(items) => items.len(),
        Command::Ack(items) => items.len(),
        _ => 1,
    }
}

fn put(put: PutReply) -> Answer {
    match put.outcome {
        PutOutcome::Created => Answer::Created(put.id.0),
        PutOutcome::Duplicate => Answer::Duplicate(put.id.0),
        PutOutcome::Replaced => Answer::Replaced(put.id.0),
    }
}

fn ended(ended: EndReply) -> Answer {
    match ended {
        EndReply::Done | EndReply::Retry { .. } => Answer::Done,
        EndReply::Dead => Answer::Dead,
        EndReply::Gone => Answer::Gone,
    }
}

fn taken(job: &LeasedJob) -> Taken {
    Taken {
        id: job.id.0,
        fence: job.token.fence,
        attempt: job.attempt,
        ttr_ms: job.ttr_ms,
        topic: job.topic.as_str().to_owned(),
        key: job.key.as_ref().map(|key| String::from_utf8_lossy(key).into_owned()),
        number: number_of(&job.body),
    }
}
