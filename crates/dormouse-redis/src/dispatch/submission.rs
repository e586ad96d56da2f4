//! Dispatches a submission: looks up the topics and shards it names, then starts its commands.
//!
//! Callers see the commands of one submission executed in their order. Partitions keep the order of
//! requests of one submission number, so most commands can start at once. Two kinds cannot:
//!
//! - a *barrier*, which sends requests to several partitions one after the other: all commands
//!   before it must be answered before it starts, and it before the next one starts;
//! - a reserve with another command after it, because a script executes reserves last.
//!
//! Two paths: all commands can start at once and everything they name is known; or a task that
//! looks up names and waits at barriers (`run_in_order`). A command that starts has queued its
//! first requests when `start` returns.

use std::collections::HashSet;
use std::mem::discriminant;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use dormouse_core::backend::{Request, Sink};
use dormouse_core::command::{Command, Name};
use dormouse_core::error::Error;
use dormouse_core::limits::WAITERS_MAX;
use dormouse_core::topic::TopicName;
use tokio::task::spawn_local;

use super::fanout::{self, Fanout};
use super::{Dispatcher, Wait, check_place};
use crate::clock::ANY_TIME;
use crate::codec::put::shard_of;
use crate::inbox::InboxShare;
use crate::intake::Submission;
use crate::outbox::Caller;
use crate::scheduler::SubmissionNo;
use crate::wire::flow;

/// The topics and shards that a submission names.
#[derive(Default)]
struct Names {
    /// Registered if they are new.
    create: HashSet<TopicName>,
    /// Only looked up.
    find: HashSet<TopicName>,
    shards: HashSet<u32>,
}

impl Names {
    /// `partitions`: those of a new topic.
    fn add(&mut self, command: &Command, partitions: u64) {
        // A command that will be refused must not create its topic.
        match command {
            Command::Put(puts) => {
                for put in puts.iter().filter(|put| put.check(ANY_TIME).is_ok()) {
                    let fits = check_place(put, partitions).is_ok();
                    let topics = if fits { &mut self.create } else { &mut self.find };
                    topics.insert(put.topic.clone());
                }
                return;
            }
            Command::Chain(chain) if chain.check(ANY_TIME).is_err() => return,
            Command::SetTopic(set) if set.check().is_err() => return,
            Command::Pause(pause) if fanout::pause_ms(pause).is_err() => return,
            Command::SetPush(set) if set.check().is_err() => return,
            _ => {}
        }
        // A topic that is there may have fewer partitions than a new one would have.
        let creates = match command {
            Command::Pause(_) => true,
            Command::SetTopic(set) => flow::check(&set.settings, partitions).is_ok(),
            Command::Chain(chain) => {
                chain.puts.iter().all(|put| check_place(put, partitions).is_ok())
            }
            Command::SetPush(set) => set.push.as_ref().is_some_and(|push| {
                flow::check_share("concurrency", push.concurrency, partitions).is_ok()
            }),
            // A blocking reserve subscribes to the partitions, so they must exist.
            Command::Reserve(reserve) => reserve.wait_ms > 0 && reserve.check().is_ok(),
            _ => false,
        };
        let topics = if creates { &mut self.create } else { &mut self.find };
        command.names(|name| match name {
            Name::Job(id) => {
                self.shards.insert(shard_of(id));
            }
            Name::Topic(topic) => {
                topics.insert(topic.clone());
            }
        });
    }

    async fn look_up(self, dispatcher: &Dispatcher) -> Result<(), Error> {
        for name in &self.create {
            dispatcher.find_or_create(name).await?;
        }
        for name in &self.find {
            dispatcher.find(name).await?;
        }
        for shard in self.shards {
            dispatcher.find_shard(shard).await?;
        }
        Ok(())
    }
}

/// Whether a command sends requests to several partitions one after the other.
fn is_barrier(command: &Command) -> bool {
    match command {
        Command::Put(_)
        | Command::Ack(_)
        | Command::Nack(_)
        | Command::Release(_)
        | Command::Extend(_)
        | Command::Kill(_)
        | Command::Cancel(_)
        | Command::Reschedule(_)
        | Command::Revive(_)
        | Command::Get(_)
        | Command::TopicsOf(_)
        | Command::ReserveId(_)
        | Command::OpenSession
        | Command::Withdraw(_)
        | Command::Lock(_)
        | Command::RenewLock(_)
        | Command::BreakLock(_)
        | Command::Unlock(_) => false,
        Command::Reserve(reserve) => reserve.topics.len() > 1,
        _ => true,
    }
}

/// The index from which on there are only reserves. A reserve before it must be answered before the
/// next command starts.
fn last_reserves(batch: &[Request]) -> usize {
    let other = |request: &Request| !is_reserve(&request.command);
    batch.iter().rposition(other).map_or(0, |index| index + 1)
}

/// Whether a reserve may start before the commands `before` it are answered: commands of one of
/// these kinds share a script batch with it, in which reserves come last.
fn share_batch(before: &[Request]) -> bool {
    let others = || before.iter().map(|request| &request.command).filter(|c| !is_reserve(c));
    let first = others().next().map(discriminant);
    others().all(|command| {
        let goes = matches!(
            command,
            Command::Put(_)
                | Command::Ack(_)
                | Command::Nack(_)
                | Command::Release(_)
                | Command::Extend(_)
        );
        goes && Some(discriminant(command)) == first
    })
}

fn is_reserve(command: &Command) -> bool {
    matches!(command, Command::Reserve(_))
}

/// For each command, whether it is a barrier.
fn barriers(batch: &[Request]) -> Vec<bool> {
    let is_barrier = |(index, request): (usize, &Request)| {
        let before = batch.get(..index).unwrap_or_default();
        is_barrier(&request.command) || is_reserve(&request.command) && !share_batch(before)
    };
    batch.iter().enumerate().map(is_barrier).collect()
}

/// Whether all commands can start at once, in their order.
fn is_simple(batch: &[Request]) -> bool {
    let early = batch.get(..last_reserves(batch)).unwrap_or_default();
    batch.len() == 1
        || !barriers(batch).contains(&true)
            && !early.iter().any(|request| is_reserve(&request.command))
}

impl Dispatcher {
    pub(super) fn dispatch(self: &Rc<Dispatcher>, submission: Submission) {
        let Submission { batch, sink, share } = submission;
        let share = Rc::new(share);
        batch.iter().for_each(|request| self.begin_wait(request));
        let no = (batch.len() > 1).then(|| self.shared.next_submission_no());
        if is_simple(&batch) && batch.iter().all(|request| self.is_known(&request.command)) {
            for request in batch {
                let caller = self.caller(&request, &sink, &share);
                self.start(no, request, caller);
            }
            return;
        }
        let (dispatcher, busy) = (Rc::clone(self), Rc::clone(&self.busy));
        spawn_local(async move {
            dispatcher.run_in_order(no, batch, sink, share).await;
            drop(busy);
        });
    }

    /// Whether all topics and shards are known that a command names.
    fn is_known(&self, command: &Command) -> bool {
        let (topics, shards) = (self.topics.borrow(), self.shards.borrow());
        let mut is_known = true;
        command.names(|name| {
            is_known &= match name {
                Name::Job(id) => shards.contains_key(&shard_of(id)),
                Name::Topic(topic) => topics.contains_key(topic),
            };
        });
        is_known
    }

    /// Begins the wait of a request that may wait; `start` or `run_in_order` ends it.
    fn begin_wait(&self, request: &Request) {
        let wait_ms = match &request.command {
            Command::Reserve(reserve) => reserve.wait_ms,
            Command::Lock(lock) => lock.wait_ms,
            _ => 0,
        };
        if wait_ms > 0 {
            let mut waiting = self.waiting.borrow_mut();
            let deadline = self.shared.clock.deadline(wait_ms.unsigned_abs());
            let wait = Wait::new(deadline, waiting.len() < WAITERS_MAX);
            waiting.insert(request.ticket, Rc::new(wait));
        }
    }

    async fn run_in_order(
        self: Rc<Dispatcher>,
        no: Option<SubmissionNo>,
        batch: Vec<Request>,
        sink: Arc<dyn Sink>,
        share: Rc<InboxShare>,
    ) {
        let mut names = Names::default();
        let partitions = u64::from(self.partitions);
        batch.iter().for_each(|request| names.add(&request.command, partitions));
        if let Err(error) = names.look_up(&self).await {
            for request in batch {
                self.waiting.borrow_mut().remove(&request.ticket);
                self.caller(&request, &sink, &share).answer(Err(error.clone()));
            }
            return;
        }
        let mut running = Vec::new();
        let last_reserves = last_reserves(&batch);
        let barriers = barriers(&batch);
        for (index, (request, barrier)) in batch.into_iter().zip(barriers).enumerate() {
            let waits = request.command.may_wait();
            let ends_first = barrier || is_reserve(&request.command) && index < last_reserves;
            if barrier {
                for answered in running.drain(..) {
                    answered.await;
                }
            }
            let mut caller = self.caller(&request, &sink, &share);
            let answered = caller.answered();
            self.start(no, request, caller);
            if ends_first && !waits {
                answered.await;
            } else if !waits {
                running.push(answered);
            }
        }
    }

    /// Starts a command: when this returns, its first requests are queued.
    fn start(
        self: &Rc<Dispatcher>,
        submission: Option<SubmissionNo>,
        request: Request,
        caller: Caller,
    ) {
        let Request { ticket, command, .. } = request;
        let Some((command, caller)) =
            Fanout { dispatcher: self, submission }.start(command, caller)
        else {
            return;
        };
        let dispatcher = Rc::clone(self);
        let mut task = Box::pin(async move {
            let fanout = Fanout { dispatcher: &dispatcher, submission };
            let wait = dispatcher.waiting.borrow().get(&ticket).cloned();
            let answer = fanout.run(wait, command).await;
            dispatcher.waiting.borrow_mut().remove(&ticket);
            caller.answer(answer);
        });
        // A task of its own would be polled later than commands that come after this one.
        if task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            spawn_local(task);
        }
    }
}
