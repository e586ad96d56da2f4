//! What all partitions share: the scheduler, the client of Redis, and the way to callers.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::HashMap;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dormouse_core::backend::EventSink;
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::topic::TopicName;
use tokio::sync::Notify;

use super::decode::ScriptReply;
use super::request::PartitionRequest;
use super::waiter::Waiter;
use crate::clock::{self, Clock};
use crate::cluster::ClusterClient;
use crate::errors::unconfirmed;
use crate::intake::Intake;
use crate::outbox::Outbox;
use crate::scheduler::{
    Heads, Now, PartitionNo, RECHECK, RECHECK_JITTER, Scheduler, SubmissionNo, WaiterNo,
};
use crate::script::Scripts;

/// What partitions ask of the dispatcher above them.
pub(crate) trait Upstream {
    /// Dispatches the submissions that have arrived.
    fn drain(&self);
    /// Registers all known topics again, after Redis lost its data. An error if this one has other
    /// shards by now, or the register cannot be reached.
    fn restore(&self, topic: TopicName) -> Registered;
    /// Gives a portion of the ticks of a partition.
    fn give_ticks(&self, shard: u32);
    /// Looks whether the topic is registered as this server knows it; restores it if it is not
    /// registered at all.
    fn confirm(&self, topic: TopicName) -> Registered;
}

/// Whether a topic is registered as this server knows it.
pub(crate) type Registered = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

pub(crate) struct Shared {
    pub(crate) client: ClusterClient,
    pub(crate) clock: Clock,
    pub(crate) scripts: Scripts,
    pub(crate) events: Arc<EventSink>,
    /// This server's name in the headers of partitions; the sequences' names begin with it.
    pub(crate) server: String,
    /// How many replicas must confirm a change before it is answered.
    pub(crate) replicas: u32,
    pub(crate) outbox: Rc<Outbox>,
    pub(crate) intake: Intake,
    upstream: RefCell<Option<Box<dyn Upstream>>>,
    scheduler: RefCell<Scheduler<PartitionRequest, ScriptReply>>,
    /// Wakes the task of each partition.
    wakes: RefCell<Vec<Rc<Notify>>>,
    /// The reserves that are parked.
    waiters: RefCell<HashMap<WaiterNo, Rc<Waiter>>>,
    began_at: Instant,
    submissions: Cell<SubmissionNo>,
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
            replicas,
            outbox: Outbox::start(),
            intake,
            upstream: RefCell::default(),
            // Above the numbers of a server of the same name before it.
            scheduler: RefCell::new(Scheduler::new(replicas, wall_us)),
            wakes: RefCell::default(),
            waiters: RefCell::default(),
            began_at: clock::instant(),
            submissions: Cell::new(0),
            random: Cell::new(seed | 1),
        }
    }

    pub(crate) fn set_upstream(&self, upstream: impl Upstream + 'static) {
        *self.upstream.borrow_mut() = Some(Box::new(upstream));
    }

    /// Dispatches the submissions that have arrived.
    pub(super) fn drain(&self) {
        self.upstream.borrow().iter().for_each(|upstream| upstream.drain());
    }

    /// Gives a portion of the ticks of a partition.
    pub(super) fn give_ticks(&self, shard: u32) {
        self.upstream.borrow().iter().for_each(|upstream| upstream.give_ticks(shard));
    }

    /// Registers all known topics again, after Redis lost its data.
    pub(super) async fn restore(&self, topic: TopicName) -> Result<(), Error> {
        let restored = self.upstream.borrow().as_ref().map(|upstream| upstream.restore(topic));
        if let Some(restored) = restored { restored.await } else { Ok(()) }
    }

    /// Looks whether the topic is registered as this server knows it.
    pub(super) async fn confirm(&self, topic: TopicName) -> Result<(), Error> {
        let confirmed = self.upstream.borrow().as_ref().map(|upstream| upstream.confirm(topic));
        if let Some(confirmed) = confirmed { confirmed.await } else { Ok(()) }
    }

    fn now(&self) -> Now {
        let steady = clock::instant().duration_since(self.began_at);
        Now { steady, redis_ms: self.clock.reached_ms() }
    }

    /// An instant of the scheduler's as one of this machine's clock.
    pub(super) fn instant(&self, steady: Duration) -> Instant {
        self.began_at + steady
    }

    /// Lets the scheduler do something, and wakes the partitions that this concerns.
    pub(super) fn schedule<T>(
        &self,
        act: impl FnOnce(&mut Scheduler<PartitionRequest, ScriptReply>, Now) -> T,
    ) -> T {
        let mut scheduler = self.scheduler.borrow_mut();
        let result = act(&mut scheduler, self.now());
        let news = scheduler.take_news();
        drop(scheduler);
        for no in news.woken {
            self.wakes.borrow().get(no).into_iter().for_each(|wake| wake.notify_one());
        }
        for no in news.freed {
            self.waiter(no).into_iter().for_each(|waiter| waiter.note_poll_ended());
        }
        result
    }

    pub(super) fn heads(&self, no: PartitionNo) -> RefMut<'_, Heads> {
        RefMut::map(self.scheduler.borrow_mut(), |scheduler| scheduler.heads_mut(no))
    }

    /// Adds a partition, one of `of` of its topic; its task is woken by the notification.
    pub(super) fn add_partition(&self, of: u64, wake: &Rc<Notify>) -> PartitionNo {
        let of = usize::try_from(of).unwrap_or(1);
        let recheck = RECHECK + RECHECK_JITTER.mul_f64(self.jitter(1_000) as f64 / 1e3);
        self.wakes.borrow_mut().push(Rc::clone(wake));
        self.schedule(|scheduler, now| scheduler.add_partition(of, recheck, now))
    }

    pub(super) fn add_waiter(&self, waiter: &Rc<Waiter>) {
        self.waiters.borrow_mut().insert(waiter.no, Rc::clone(waiter));
    }

    pub(super) fn waiter(&self, no: WaiterNo) -> Option<Rc<Waiter>> {
        self.waiters.borrow().get(&no).cloned()
    }

    /// Forgets a waiter, wherever it is parked.
    pub(super) fn remove_waiter(&self, no: WaiterNo) {
        if self.waiters.borrow_mut().remove(&no).is_some() {
            self.schedule(|scheduler, _| scheduler.remove_waiter(no));
        }
    }

    /// The answer to a change that too few replicas confirmed; `done` says what was changed.
    pub(crate) fn unconfirmed(&self, done: &str, id: Option<JobId>) -> Error {
        self.client.meters().note_unconfirmed();
        unconfirmed(done, id)
    }

    pub(crate) fn next_submission_no(&self) -> SubmissionNo {
        self.submissions.set(self.submissions.get() + 1);
        self.submissions.get()
    }

    /// A new version of a configuration. Random rather than counted: a failover may undo the last
    /// ones, and another server must not take the same number for another content.
    pub(crate) fn next_version(&self) -> u64 {
        // Lua's numbers are exact up to 2^53.
        self.jitter(1 << 52) | 1
    }

    /// A random number below `end`.
    fn jitter(&self, end: u64) -> u64 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x % end.max(1)
    }
}
