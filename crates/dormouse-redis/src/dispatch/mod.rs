//! The dispatcher: takes submissions from the intake, sends their requests to partitions, and
//! routes wakeups. It runs on one thread with all partitions, so nothing here is locked; `Cell` and
//! `RefCell` are never borrowed across an `await`.
//!
//! The way of a request: `Intake::recv` or `drain` -> `Dispatcher::dispatch` (`submission`) ->
//! `Fanout::start`, or a task that runs `Fanout::run` -> `Partition::submit` ...
//! `Caller::answer` -> `Outbox::flush` -> the caller's sink.
//!
//! The thread avoids a cost that exceeds the work for a job: being woken for every submission (see
//! `intake`).

mod fanout;
mod pushes;
mod register;
mod sessions;
mod submission;
mod ticking;
mod wait;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use crate::limits::LOCK_PARTITIONS;
use bytes::Bytes;
use dormouse_core::backend::{Request, Sink, Ticket};
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::op::Put;
use dormouse_core::topic::{Settings, TopicName};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep};

use crate::cluster::Wakeup;
use crate::codec::put::shard_of;
use crate::inbox::InboxShare;
use crate::keys;
use crate::outbox::Caller;
use crate::partition::{Partition, Registered, Shared, Upstream};
use crate::scheduler::REPLY_TIMEOUT;
use sessions::Sessions;
use wait::Wait;

/// Over several partitions a put cannot have both a key and a group.
fn check_place(put: &Put, partitions: u64) -> Result<(), Error> {
    if put.key.is_none() || put.group.is_none() || partitions <= 1 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a job with a key rests in the partition of its key, one with a group in that of its \
         group, and the topic has {partitions} partitions; leave out key or group, or make the \
         topic with --redis-partitions 1",
    )))
}

/// What decides the partition of a put, if something does: its group, so that limits of groups are
/// exact, or its key, so that keys are unique.
fn place_of(put: &Put) -> Option<Bytes> {
    put.group.clone().or_else(|| put.key.clone())
}

/// A topic, as this server sees it.
pub(crate) struct Topic {
    first_shard: u32,
    pub(crate) partitions: Vec<Rc<Partition>>,
    next: Cell<usize>,
}

impl Topic {
    pub(crate) fn partition_of_key(&self, key: &Bytes) -> Option<&Rc<Partition>> {
        self.partitions.get(usize::from(redis_hash(key)) % self.partitions.len().max(1))
    }

    fn has_settings(&self) -> bool {
        let has =
            |partition: &Rc<Partition>| partition.config.borrow().settings != Settings::default();
        self.partitions.iter().any(has)
    }

    /// The partition of the next job without a key: round robin, without those that are away.
    pub(crate) fn next_partition(&self) -> Option<&Rc<Partition>> {
        let in_turn = || {
            self.next.set(self.next.get().wrapping_add(1));
            self.partitions.get(self.next.get() % self.partitions.len().max(1))
        };
        let first = in_turn()?;
        if !first.is_away() {
            return Some(first);
        }
        let mut others = (1..self.partitions.len()).filter_map(|_| in_turn());
        others.find(|partition| !partition.is_away()).or(Some(first))
    }
}

/// The partition of a key must never change, so the hash is the one Redis Cluster specifies.
fn redis_hash(key: &[u8]) -> u16 {
    crate::cluster::slot_of(key)
}

pub(crate) struct Dispatcher {
    pub(crate) shared: Rc<Shared>,
    /// The number of partitions of a new topic.
    pub(crate) partitions: u16,
    /// Topics that the register lists as having had schedules.
    ticking: RefCell<HashSet<TopicName>>,
    /// The topics looked up so far. A registration never changes, unless Redis loses its data.
    topics: RefCell<HashMap<TopicName, Rc<Topic>>>,
    /// The partitions of all known topics, by shard: how a job's id leads to its partition.
    shards: RefCell<HashMap<u32, Rc<Partition>>>,
    /// The greatest shard known.
    last_shard: Cell<u32>,
    locks: RefCell<HashMap<u16, Rc<Partition>>>,
    /// When the topics were last registered again; locked meanwhile.
    restored_at: tokio::sync::Mutex<Option<std::time::Instant>>,
    pub(crate) sessions: RefCell<Sessions>,
    /// Blocking reserves and locks by ticket, so that they can be withdrawn.
    pub(crate) waiting: RefCell<HashMap<Ticket, Rc<Wait>>>,
    /// The numbers of the requests that wait for a lock, by its name.
    pub(crate) lock_queues: RefCell<HashMap<Bytes, BTreeSet<u64>>>,
    /// All partitions, of topics and locks, by the channel of their wakeups.
    channels: RefCell<HashMap<Bytes, Rc<Partition>>>,
    last_waiter_no: Cell<u64>,
    /// Held by every request that is not yet answered.
    busy: Rc<()>,
}

/// Weak, because the dispatcher owns the partitions.
impl Upstream for Weak<Dispatcher> {
    fn drain(&self) {
        self.upgrade().into_iter().for_each(|dispatcher| dispatcher.drain());
    }

    fn give_ticks(&self, shard: u32) {
        self.upgrade().into_iter().for_each(|dispatcher| dispatcher.give_ticks(shard));
    }

    fn restore(&self, topic: TopicName) -> Registered {
        let dispatcher = self.upgrade();
        Box::pin(async move {
            match dispatcher {
                Some(dispatcher) => dispatcher.restore(&topic).await,
                None => Ok(()),
            }
        })
    }

    fn confirm(&self, topic: TopicName) -> Registered {
        let dispatcher = self.upgrade();
        Box::pin(async move {
            match dispatcher {
                Some(dispatcher) => dispatcher.confirm(&topic).await,
                None => Ok(()),
            }
        })
    }
}

impl Dispatcher {
    pub(crate) fn new(shared: Shared, partitions: u16) -> Rc<Dispatcher> {
        let dispatcher = Rc::new(Dispatcher {
            shared: Rc::new(shared),
            partitions,
            ticking: RefCell::default(),
            topics: RefCell::default(),
            shards: RefCell::default(),
            last_shard: Cell::new(0),
            locks: RefCell::default(),
            restored_at: tokio::sync::Mutex::default(),
            sessions: RefCell::default(),
            waiting: RefCell::default(),
            lock_queues: RefCell::default(),
            channels: RefCell::default(),
            last_waiter_no: Cell::new(0),
            busy: Rc::new(()),
        });
        dispatcher.shared.set_upstream(Rc::downgrade(&dispatcher));
        dispatcher
    }

    /// Runs until the senders are gone and all requests are answered.
    pub(crate) async fn run(self: Rc<Dispatcher>, mut wakeups: UnboundedReceiver<Wakeup>) {
        tokio::task::spawn_local(Dispatcher::watch_ticking(Rc::downgrade(&self)));
        loop {
            tokio::select! {
                submission = self.shared.intake.recv() => match submission {
                    Some(submission) => {
                        self.dispatch(submission);
                        self.drain();
                    }
                    None => break,
                },
                Some(wakeup) = wakeups.recv() => self.handle_wakeup(wakeup),
            }
        }
        self.finish(&mut wakeups).await;
    }

    /// Dispatches all submissions that have arrived.
    fn drain(self: &Rc<Dispatcher>) {
        while let Some(submission) = self.shared.intake.try_recv() {
            self.dispatch(submission);
        }
    }

    /// Answers blocking requests with an empty reply, and waits for the others; they time out at
    /// the latest.
    #[expect(clippy::disallowed_methods, reason = "a stop has a deadline")]
    async fn finish(&self, wakeups: &mut UnboundedReceiver<Wakeup>) {
        for wait in self.waiting.borrow().values() {
            wait.withdraw();
        }
        let last = Instant::now() + REPLY_TIMEOUT + Duration::from_secs(2);
        while Rc::strong_count(&self.busy) > 1 && Instant::now() < last {
            // Polling is good enough: it happens once per backend.
            sleep(Duration::from_millis(2)).await;
            while let Ok(wakeup) = wakeups.try_recv() {
                self.handle_wakeup(wakeup);
            }
        }
        self.shared.outbox.flush();
    }

    fn handle_wakeup(&self, wakeup: Wakeup) {
        match wakeup {
            Wakeup::Message { channel, payload } => {
                if let Some(partition) = self.channels.borrow().get(&channel) {
                    let at_ms = crate::wire::Reader::new(&payload).u64().unwrap_or(0);
                    partition.wake_at(at_ms);
                }
            }
            // Messages may have been missed, on any of the node's channels.
            Wakeup::Lost | Wakeup::Restored => {
                for partition in self.channels.borrow().values() {
                    partition.poll_now();
                    partition.changed.notify_waiters();
                }
            }
        }
    }

    /// Waiters are served in the order of their numbers.
    pub(crate) fn next_waiter_no(&self) -> u64 {
        self.last_waiter_no.set(self.last_waiter_no.get() + 1);
        self.last_waiter_no.get()
    }

    /// The topic of this name, if it has been looked up before.
    pub(crate) fn known(&self, name: &TopicName) -> Option<Rc<Topic>> {
        self.topics.borrow().get(name).cloned()
    }

    /// Adds a topic as the register has it, and starts its partitions.
    fn add_topic(&self, name: &TopicName, first_shard: u32, partitions: u16) -> Rc<Topic> {
        if let Some(topic) = self.known(name) {
            return topic;
        }
        let mut all = Vec::with_capacity(usize::from(partitions));
        for index in 0..partitions {
            let tag = keys::topic_tag(name.as_str(), index);
            let shard = first_shard + u32::from(index);
            let position = (u64::from(index), u64::from(partitions));
            let partition =
                Partition::start(&self.shared, Some(name.clone()), tag, shard, position);
            let channel = partition.channel.clone();
            self.channels.borrow_mut().insert(channel, Rc::clone(&partition));
            self.shards.borrow_mut().insert(shard, Rc::clone(&partition));
            self.last_shard.set(self.last_shard.get().max(shard));
            all.push(partition);
        }
        let topic = Topic { first_shard, partitions: all, next: Cell::new(0) };
        let topic = Rc::new(topic);
        self.topics.borrow_mut().insert(name.clone(), Rc::clone(&topic));
        topic
    }

    /// Forgets a topic that has other shards by now; the next request looks it up.
    fn forget(&self, name: &TopicName) {
        let Some(topic) = self.topics.borrow_mut().remove(name) else { return };
        let is_its = |known: &Rc<Partition>| known.topic.as_ref() == Some(name);
        self.shards.borrow_mut().retain(|_, known| !is_its(known));
        topic.partitions.iter().for_each(|partition| partition.make_void());
    }

    /// Whether this server knows one of these shards as that of another topic.
    fn knows_otherwise(&self, name: &TopicName, first_shard: u32, partitions: u16) -> bool {
        let shards = self.shards.borrow();
        let mut its = first_shard..first_shard + u32::from(partitions);
        its.any(|no| shards.get(&no).is_some_and(|known| known.topic.as_ref() != Some(name)))
    }

    /// The partition of a job, if its shard has been looked up before.
    pub(crate) fn partition_of(&self, id: JobId) -> Option<Rc<Partition>> {
        self.shards.borrow().get(&shard_of(id)).cloned()
    }

    pub(crate) fn lock_partition(&self, name: &[u8]) -> Rc<Partition> {
        let index = redis_hash(name) % LOCK_PARTITIONS;
        self.lock_partition_at(index)
    }

    pub(crate) fn lock_partition_at(&self, index: u16) -> Rc<Partition> {
        if let Some(partition) = self.locks.borrow().get(&index) {
            return Rc::clone(partition);
        }
        let tag = keys::lock_tag(index);
        let position = (u64::from(index), u64::from(LOCK_PARTITIONS));
        let partition = Partition::start(&self.shared, None, tag, 0, position);
        let channel = partition.channel.clone();
        self.channels.borrow_mut().insert(channel, Rc::clone(&partition));
        self.locks.borrow_mut().insert(index, Rc::clone(&partition));
        partition
    }

    fn caller(&self, request: &Request, sink: &Arc<dyn Sink>, share: &Rc<InboxShare>) -> Caller {
        let share = (!request.command.may_wait()).then_some(share);
        Caller::new(&self.shared.outbox, sink, request.ticket, share, &self.busy)
    }
}
