//! The desk: requests come in, go to their partitions, and are answered. All of it runs on one
//! thread, so nothing here is locked.

mod batch;
mod intake;
mod outbox;
mod register;
pub(crate) mod sessions;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use crate::limits::LOCK_PARTITIONS;
use bytes::Bytes;
use dormouse_core::backend::{Request, Sink, Ticket};
use dormouse_core::job::JobId;
use dormouse_core::topic::TopicName;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep};

use crate::clock::{self, Clock};
use crate::cluster::{ClusterClient, Wakeup};
use crate::codec::put::shard_of;
use crate::events::EventSink;
use crate::inbox::Admission;
use crate::keys;
use crate::partition::waiter::Waiter;
use crate::partition::{Partition, REPLY_TIMEOUT, SubmissionNo};
use crate::script::Scripts;
pub(crate) use intake::{Intake, IntakeSender};
pub(crate) use outbox::{Caller, Outbox};
use sessions::Sessions;

/// How often the desk looks whether something happens before it sleeps. Found by trying: half as
/// many gained less, more gained nothing.
const SPIN_ROUNDS: u32 = 60;
/// Somebody else had the processor for longer than those take who are woken here.
const PREEMPTED: Duration = Duration::from_micros(500);
/// How long the desk sleeps at once after that.
const SPIN_BACKOFF: Duration = Duration::from_millis(100);

/// A batch on its way to the desk.
pub(crate) struct Submission {
    pub(crate) batch: Vec<Request>,
    pub(crate) sink: Arc<dyn Sink>,
    /// What it counts for while it is under way.
    pub(crate) admission: Admission,
}

/// What all partitions share.
pub(crate) struct Shared {
    pub(crate) client: ClusterClient,
    pub(crate) clock: Clock,
    pub(crate) scripts: Scripts,
    pub(crate) events: Arc<EventSink>,
    /// This server's name in the books of partitions.
    pub(crate) server: String,
    /// Requests of this server have greater numbers than those of any life before.
    pub(crate) first_number: u64,
    /// How many replicas must have a change before it is answered.
    pub(crate) replicas: u32,
    /// Answers on their way out.
    pub(crate) outbox: Rc<Outbox>,
    pub(crate) intake: Intake,
    dispatcher: RefCell<Weak<Dispatcher>>,
    submissions: Cell<SubmissionNo>,
    partitions: Cell<u64>,
    random: Cell<u64>,
}

impl Shared {
    #[expect(clippy::disallowed_methods, reason = "names of sequences grow over restarts")]
    pub(crate) fn new(
        client: ClusterClient,
        clock: Clock,
        events: Arc<EventSink>,
        replicas: u32,
        seed: u64,
        intake: Intake,
    ) -> Shared {
        let wall_us = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(0));
        Shared {
            client,
            clock,
            scripts: Scripts::new(),
            events,
            server: format!("{seed:016x}"),
            first_number: wall_us,
            replicas,
            outbox: Outbox::start(),
            intake,
            dispatcher: RefCell::default(),
            submissions: Cell::new(0),
            partitions: Cell::new(0),
            random: Cell::new(seed | 1),
        }
    }

    pub(crate) fn next_submission_no(&self) -> SubmissionNo {
        self.submissions.set(self.submissions.get() + 1);
        self.submissions.get()
    }

    /// Those who stand at the door get in line.
    pub(crate) async fn drain(&self) {
        let dispatcher = self.dispatcher.borrow().upgrade();
        if let Some(dispatcher) = dispatcher {
            dispatcher.drain();
            if dispatcher.unpolled_tasks.get() > 0 {
                // Who has a task is in line when that has begun.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Redis has lost what it had.
    pub(crate) async fn restore(&self) {
        let dispatcher = self.dispatcher.borrow().upgrade();
        if let Some(dispatcher) = dispatcher {
            dispatcher.restore().await;
        }
    }

    pub(crate) fn next_partition(&self) -> u64 {
        self.partitions.set(self.partitions.get() + 1);
        self.partitions.get()
    }

    /// A version nobody has used: a failover may take the last ones back, so they are not counted.
    pub(crate) fn next_version(&self) -> u64 {
        // Exact in a script.
        self.jitter(1 << 52) | 1
    }

    /// A number below `end`, so that servers do not march in step.
    pub(crate) fn jitter(&self, end: u64) -> u64 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x % end.max(1)
    }
}

/// A topic, as this server sees it.
pub(crate) struct Topic {
    first_shard: u32,
    pub(crate) partitions: Vec<Rc<Partition>>,
    next: Cell<usize>,
}

impl Topic {
    /// Where the job with this key goes.
    pub(crate) fn partition_of_key(&self, key: &Bytes) -> Option<&Rc<Partition>> {
        self.partitions.get(usize::from(redis_hash(key)) % self.partitions.len().max(1))
    }

    /// Where a job without a key goes: to one after the other.
    pub(crate) fn next_partition(&self) -> Option<&Rc<Partition>> {
        self.next.set(self.next.get().wrapping_add(1));
        self.partitions.get(self.next.get() % self.partitions.len().max(1))
    }
}

/// Which partition a key belongs to must never change, so the hash is the one that clusters use.
fn redis_hash(key: &[u8]) -> u16 {
    crate::cluster::slot_of(key)
}

/// The desk.
pub(crate) struct Dispatcher {
    pub(crate) shared: Rc<Shared>,
    /// How many a new topic gets.
    pub(crate) partitions: u16,
    topics: RefCell<HashMap<TopicName, Rc<Topic>>>,
    shards: RefCell<HashMap<u32, Rc<Partition>>>,
    locks: RefCell<HashMap<u16, Rc<Partition>>>,
    pub(crate) sessions: RefCell<Sessions>,
    /// Reserves and locks that wait, to be withdrawn.
    pub(crate) waiting: RefCell<HashMap<Ticket, Rc<Waiter>>>,
    /// Who waits for a lock here, in the order they came.
    pub(crate) lock_queues: RefCell<HashMap<Bytes, BTreeSet<u64>>>,
    channels: RefCell<HashMap<Bytes, Rc<Partition>>>,
    last_waiter_no: Cell<u64>,
    /// Tasks that have not begun yet.
    unpolled_tasks: Cell<usize>,
    /// Held by every request that is under way.
    busy: Rc<()>,
}

impl Dispatcher {
    pub(crate) fn new(shared: Shared, partitions: u16) -> Rc<Dispatcher> {
        let dispatcher = Rc::new(Dispatcher {
            shared: Rc::new(shared),
            partitions,
            topics: RefCell::default(),
            shards: RefCell::default(),
            locks: RefCell::default(),
            sessions: RefCell::default(),
            waiting: RefCell::default(),
            lock_queues: RefCell::default(),
            channels: RefCell::default(),
            last_waiter_no: Cell::new(0),
            unpolled_tasks: Cell::new(0),
            busy: Rc::new(()),
        });
        *dispatcher.shared.dispatcher.borrow_mut() = Rc::downgrade(&dispatcher);
        dispatcher
    }

    /// Works until nobody can ask any more and all is answered.
    pub(crate) async fn run(self: Rc<Dispatcher>, mut wakeups: UnboundedReceiver<Wakeup>) {
        tokio::task::spawn_local(Rc::clone(&self).spin_before_park());
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

    /// Looks at the door and at the connections again and again for a little while, when a flight
    /// has left with many on board: most likely something happens very soon, and this thread would
    /// hardly be asleep when it has to be woken. Where others want the processor it sleeps at once:
    /// who wakes goes first, who gives way goes last.
    async fn spin_before_park(self: Rc<Dispatcher>) {
        let mut not_before = clock::instant();
        loop {
            self.shared.intake.large_batch_sent().await;
            let mut at = clock::instant();
            for _ in 0..SPIN_ROUNDS {
                if !self.shared.intake.has_in_flight() || at < not_before {
                    break;
                }
                std::thread::yield_now();
                let back_at = clock::instant();
                if back_at - at > PREEMPTED {
                    not_before = back_at + SPIN_BACKOFF;
                }
                self.drain();
                tokio::task::yield_now().await;
                at = clock::instant();
            }
        }
    }

    /// Takes all that stand at the door.
    fn drain(self: &Rc<Dispatcher>) {
        while let Some(submission) = self.shared.intake.try_recv() {
            self.dispatch(submission);
        }
    }

    /// Who waits is answered with nothing; who does not is answered, at the latest when patience
    /// ends.
    #[expect(clippy::disallowed_methods, reason = "a stop has a deadline")]
    async fn finish(&self, wakeups: &mut UnboundedReceiver<Wakeup>) {
        for waiter in self.waiting.borrow().values() {
            waiter.finish();
        }
        let last = Instant::now() + REPLY_TIMEOUT + Duration::from_secs(2);
        while Rc::strong_count(&self.busy) > 1 && Instant::now() < last {
            // A poll of a few ms, once in the life of a backend.
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
            Wakeup::Lost | Wakeup::Restored => {
                for partition in self.channels.borrow().values() {
                    partition.poll_now();
                    partition.changed.notify_waiters();
                }
            }
        }
    }

    /// Demands are served in the order they came.
    pub(crate) fn next_waiter_no(&self) -> u64 {
        self.last_waiter_no.set(self.last_waiter_no.get() + 1);
        self.last_waiter_no.get()
    }

    /// A topic that is known here.
    pub(crate) fn known(&self, name: &TopicName) -> Option<Rc<Topic>> {
        self.topics.borrow().get(name).cloned()
    }

    /// The topic that the register has at this place.
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
            all.push(partition);
        }
        let topic = Topic { first_shard, partitions: all, next: Cell::new(0) };
        let topic = Rc::new(topic);
        self.topics.borrow_mut().insert(name.clone(), Rc::clone(&topic));
        topic
    }

    /// Where a job of this id is, if its shard is known here.
    pub(crate) fn partition_of(&self, id: JobId) -> Option<Rc<Partition>> {
        self.shards.borrow().get(&shard_of(id)).cloned()
    }

    /// The partition of locks that this name belongs to.
    pub(crate) fn lock_partition(&self, name: &[u8]) -> Rc<Partition> {
        let index = redis_hash(name) % LOCK_PARTITIONS;
        self.lock_partition_at(index)
    }

    /// A partition of locks.
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

    /// Who gets the answer to a request.
    fn caller(&self, request: &Request, sink: &Arc<dyn Sink>, admission: &Rc<Admission>) -> Caller {
        let admission = (!batch::may_wait(&request.command)).then_some(admission);
        Caller::new(&self.shared.outbox, sink, request.ticket, admission, &self.busy)
    }
}
