//! Dispatches a submission: looks up the topics and shards it names, then starts its commands.
//!
//! Callers see the commands of one submission executed in their order. Partitions keep the order of
//! requests of one submission number, so most commands can start at once. Two kinds cannot:
//!
//! - a *barrier*, which sends requests to several partitions one after the other: all commands
//!   before it must be answered before it starts, and it before the next one starts;
//! - a reserve with another command after it, because a script executes reserves last.
//!
//! Three paths, fastest first: all commands go to one partition each (`fanout::single`, no task);
//! all can start at once and everything named is known (a task each); a task that looks up names
//! and waits at barriers (`run_in_order`).

use std::collections::HashSet;
use std::mem::discriminant;
use std::rc::Rc;
use std::sync::Arc;

use dormouse_core::backend::{Request, Sink};
use dormouse_core::command::{Command, Name};
use dormouse_core::error::Error;
use dormouse_core::limits::WAITERS_MAX;
use dormouse_core::topic::TopicName;
use tokio::task::spawn_local;

use super::fanout::single::{self, Route};
use super::fanout::{self, Fanout};
use super::{Dispatcher, Wait};
use crate::codec::put::shard_of;
use crate::inbox::InboxShare;
use crate::intake::Submission;
use crate::scheduler::SubmissionNo;

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
    fn add(&mut self, command: &Command) {
        // A command that will be refused must not create its topic.
        match command {
            Command::Put(puts) => {
                let good = puts.iter().filter(|put| fanout::is_good(put));
                return self.create.extend(good.map(|put| put.topic.clone()));
            }
            Command::SetTopic(set) if set.check().is_err() => return,
            Command::Pause(pause) if fanout::pause_ms(pause).is_err() => return,
            _ => {}
        }
        let creates = match command {
            Command::SetTopic(_) | Command::Pause(_) => true,
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

    fn is_known(&self, dispatcher: &Dispatcher) -> bool {
        let topics = dispatcher.topics.borrow();
        let shards = dispatcher.shards.borrow();
        self.create.iter().chain(&self.find).all(|name| topics.contains_key(name))
            && self.shards.iter().all(|shard| shards.contains_key(shard))
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
        | Command::ReserveId(_)
        | Command::OpenSession
        | Command::Withdraw(_)
        | Command::Lock(_)
        | Command::RenewLock(_)
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
        let is_simple = is_simple(&batch);
        let route = |request: &Request| self.single_route(&request.command);
        if is_simple && let Some(routes) = batch.iter().map(route).collect::<Option<Vec<_>>>() {
            let no = (batch.len() > 1).then(|| self.shared.next_submission_no());
            for (request, route) in batch.into_iter().zip(routes) {
                let caller = self.caller(&request, &sink, &share);
                single::submit(self, no, route, request.command, caller);
            }
            return;
        }
        batch.iter().for_each(|request| self.begin_wait(request));
        let mut names = Names::default();
        batch.iter().for_each(|request| names.add(&request.command));
        let no = self.shared.next_submission_no();
        if is_simple && names.is_known(self) {
            for request in batch {
                self.start(no, request, &sink, &share);
            }
            return;
        }
        let (dispatcher, busy) = (Rc::clone(self), Rc::clone(&self.busy));
        self.spawn(async move {
            dispatcher.run_in_order(no, names, batch, sink, share).await;
            drop(busy);
        });
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

    /// The route of a request that needs no task. A reserve needs one while a task has not been
    /// polled yet: that may be an older reserve, which is served first.
    fn single_route(&self, command: &Command) -> Option<Route> {
        let must_queue = is_reserve(command) && self.unpolled_tasks.get() > 0;
        if must_queue { None } else { single::route(self, command) }
    }

    /// Spawns a task, and counts it until it is first polled.
    fn spawn(
        self: &Rc<Dispatcher>,
        task: impl Future<Output = ()> + 'static,
    ) -> tokio::task::JoinHandle<()> {
        self.unpolled_tasks.set(self.unpolled_tasks.get() + 1);
        let dispatcher = Rc::clone(self);
        spawn_local(async move {
            dispatcher.unpolled_tasks.set(dispatcher.unpolled_tasks.get() - 1);
            task.await;
        })
    }

    async fn run_in_order(
        self: Rc<Dispatcher>,
        no: SubmissionNo,
        names: Names,
        batch: Vec<Request>,
        sink: Arc<dyn Sink>,
        share: Rc<InboxShare>,
    ) {
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
                for handle in running.drain(..) {
                    // The task ends with its answer; it does not panic.
                    let _ended = handle.await;
                }
            }
            let handle = self.start(no, request, &sink, &share);
            if ends_first && !waits {
                let _ended = handle.await;
            } else if !waits {
                running.push(handle);
            }
        }
    }

    fn start(
        self: &Rc<Dispatcher>,
        no: SubmissionNo,
        request: Request,
        sink: &Arc<dyn Sink>,
        share: &Rc<InboxShare>,
    ) -> tokio::task::JoinHandle<()> {
        let caller = self.caller(&request, sink, share);
        let dispatcher = Rc::clone(self);
        self.spawn(async move {
            let Request { ticket, command } = request;
            let fanout = Fanout { dispatcher: &dispatcher, submission: no };
            let wait = dispatcher.waiting.borrow().get(&ticket).cloned();
            let answer = fanout.run(wait, command).await;
            dispatcher.waiting.borrow_mut().remove(&ticket);
            caller.answer(answer);
        })
    }
}
