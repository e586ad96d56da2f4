//! One partition of a topic, as this server sees it: a queue of requests, the reserves parked at
//! it, and the script batches sent to it. One task per partition (`Partition::run`) fills batches
//! (`batcher`), sends them (`execute`), reads the replies (`decode`) and delivers them (`deliver`).
//!
//! A script batch belongs to a *sequence*. The sequence's name and the batch's number go with the
//! script, and the partition's header in Redis keeps, per sequence, the number and the reply of the
//! last batch executed. So a batch can be sent any number of times and is executed once: a repeated
//! number is answered with the kept reply, a smaller one is refused as late.
//!
//! Invariants
//! 1. A sequence has at most one batch in flight. Its number is greater than all before it, and it
//!    is sent with that number until it is answered.
//! 2. Requests of one submission are executed in their order, so they are in one sequence at a
//!    time. Requests of different submissions are executed in any order.
//! 3. While a waiter is parked, the partition polls at the latest when a job becomes visible as far
//!    as this server knows, when a wakeup arrives, and every few seconds.
//! 4. While a poll for a blocking waiter is in flight, no other poll is: the oldest is served
//!    first.
//! 5. Replies are delivered in the order in which the scripts were executed, so that `heads` holds
//!    what the last poll saw. Where that order is unknown, `heads` is invalidated.

mod batch;
mod batcher;
mod decode;
mod deliver;
mod execute;
mod heads;
mod in_flight;
mod reply_to;
mod request;
pub(crate) mod waiter;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dormouse_core::job::Token;
use dormouse_core::topic::TopicName;
use tokio::sync::Notify;
use tokio::time::{sleep, sleep_until};

pub(crate) use execute::{REPLY_TIMEOUT, timed_out};
pub(crate) use heads::Heads;
pub(crate) use in_flight::SECOND_BATCH_MIN;
pub(crate) use reply_to::ReplyTo;
pub(crate) use request::{
    BATCH_BYTES_MAX, BATCH_JOBS_MAX, Effect, PartitionRequest, PerItem, RawReply,
};

use crate::clock;
use crate::cluster::slot_of;
use crate::codec::nack::EndRequest;
use crate::dispatch::Shared;
use crate::keys;
use crate::wire::config::Config;
use decode::CompletedBatch;
use in_flight::InFlight;
use waiter::Waiter;

/// The number of a submission: a batch of requests that a caller handed over together.
pub(crate) type SubmissionNo = u64;

/// A partition with waiters polls at least this often. The phase is random, so that partitions and
/// servers do not poll in step.
const RECHECK: Duration = Duration::from_secs(5);
/// How long a channel stays subscribed after the last waiter.
const LINGER: Duration = Duration::from_secs(10);

struct Queued {
    /// `None` = it was submitted alone, so there is no order to keep.
    submission: Option<SubmissionNo>,
    request: PartitionRequest,
    since: Instant,
}

pub(crate) struct Partition {
    pub(crate) shared: Rc<Shared>,
    /// Unique within this backend.
    pub(crate) no: u64,
    /// `None` = it holds locks.
    pub(crate) topic: Option<TopicName>,
    pub(crate) tag: String,
    pub(crate) slot: u16,
    /// The shard number, three bytes, big-endian.
    pub(crate) shard: Bytes,
    pub(crate) keys: [Bytes; 6],
    pub(crate) channel: Bytes,
    /// Its index among the partitions of the topic, and how many those are.
    position: (u64, u64),
    pub(crate) config: RefCell<Config>,
    pub(crate) heads: RefCell<Heads>,
    queue: RefCell<VecDeque<Queued>>,
    waiters: RefCell<BTreeMap<u64, Rc<Waiter>>>,
    /// The next batch should poll for the waiters.
    poll_wanted: Cell<bool>,
    /// Items queued since the last batch was filled, or `SECOND_BATCH_MIN` if that one had no room
    /// for all. Requests left behind for their order do not count: they wait for a reply.
    backlog: Cell<usize>,
    /// Grows whenever a job may have become visible. A waiter polled for in this epoch needs no
    /// other poll.
    poll_epoch: Cell<u64>,
    /// Other partitions poll for all waiters; each asks for a poll here when it is done.
    polled_elsewhere: Cell<bool>,
    /// The earliest instant at which, by a wakeup, a job becomes visible.
    wakeup_at: Cell<Option<u64>>,
    /// The number of the last batch, over all sequences.
    last_number: Cell<u64>,
    subscription: Cell<Subscription>,
    last_poll: Cell<Instant>,
    /// After a failed batch, blocking waiters alone cause no poll before this instant.
    poll_not_before: Cell<Option<Instant>>,
    poll_backoff: Cell<Duration>,
    /// The first recheck; the others follow every `RECHECK`.
    recheck: Instant,
    wake: Notify,
    /// Signals a change to requests that wait without a parked waiter: those for locks.
    pub(crate) changed: Notify,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Subscription {
    None,
    Requested,
    Confirmed,
}

impl Partition {
    /// Creates the partition and spawns its task.
    pub(crate) fn start(
        shared: &Rc<Shared>,
        topic: Option<TopicName>,
        tag: String,
        shard: u32,
        position: (u64, u64),
    ) -> Rc<Partition> {
        let [_, high, mid, low] = shard.to_be_bytes();
        let partition = Rc::new(Partition {
            no: shared.next_partition(),
            topic,
            slot: slot_of(tag.as_bytes()),
            shard: Bytes::copy_from_slice(&[high, mid, low]),
            keys: keys::fixed(&tag),
            channel: keys::channel(&tag),
            tag,
            position,
            config: RefCell::default(),
            heads: RefCell::default(),
            queue: RefCell::default(),
            waiters: RefCell::default(),
            poll_wanted: Cell::new(false),
            backlog: Cell::new(0),
            poll_epoch: Cell::new(1),
            polled_elsewhere: Cell::new(false),
            wakeup_at: Cell::new(None),
            last_number: Cell::new(shared.first_number),
            subscription: Cell::new(Subscription::None),
            last_poll: Cell::new(clock::instant()),
            poll_not_before: Cell::new(None),
            poll_backoff: Cell::new(Duration::ZERO),
            recheck: clock::instant() + RECHECK.mul_f64(shared.jitter(1_000) as f64 / 1e3),
            wake: Notify::new(),
            changed: Notify::new(),
            shared: Rc::clone(shared),
        });
        let task = Rc::clone(&partition);
        tokio::task::spawn_local(async move { task.run().await });
        partition
    }

    /// This partition's share of a limit of the topic.
    pub(crate) fn share(&self, max: Option<u64>) -> Option<u64> {
        let (index, of) = self.position;
        max.map(|max| max / of + u64::from(index < max % of))
    }

    pub(crate) fn submit(
        &self,
        submission: impl Into<Option<SubmissionNo>>,
        request: PartitionRequest,
    ) {
        self.backlog.set(self.backlog.get() + request.items());
        let queued = Queued { submission: submission.into(), request, since: clock::instant() };
        self.queue.borrow_mut().push_back(queued);
        self.wake.notify_one();
    }

    /// Releases leases that no caller will receive; their attempts are not spent.
    pub(crate) fn give_back(&self, tokens: &[Token]) {
        if tokens.is_empty() {
            return;
        }
        let ending = |&token| EndRequest {
            token,
            delay_ms: None,
            priority: None,
            error: None,
            is_uncounted: false,
        };
        let endings = tokens.iter().map(ending).collect();
        self.submit(
            None,
            PartitionRequest::End { spends: false, endings, reply_to: ReplyTo::Discard },
        );
    }

    /// Parks a waiter. It is polled for at once.
    pub(crate) fn park(&self, waiter: &Rc<Waiter>) {
        self.backlog.set(self.backlog.get() + 1);
        self.waiters.borrow_mut().insert(waiter.no, Rc::clone(waiter));
        self.retry_poll();
    }

    pub(crate) fn unpark(&self, no: u64) {
        self.waiters.borrow_mut().remove(&no);
    }

    /// How many reserves wait for a job of this partition.
    pub(crate) fn blocking_waiters(&self) -> usize {
        self.waiters.borrow().values().filter(|waiter| waiter.is_blocking).count()
    }

    /// Polls for all waiters: a job may have become visible.
    pub(crate) fn poll_now(&self) {
        self.bump_poll_epoch();
        self.wake.notify_one();
    }

    /// Polls for those waiters that have not been polled for in this epoch.
    pub(crate) fn retry_poll(&self) {
        self.poll_wanted.set(true);
        self.wake.notify_one();
    }

    fn bump_poll_epoch(&self) {
        self.poll_wanted.set(true);
        self.poll_epoch.set(self.poll_epoch.get() + 1);
    }

    /// Handles a wakeup: a job becomes visible at this instant by Redis' clock.
    pub(crate) fn wake_at(&self, at_ms: u64) {
        let earlier = self.wakeup_at.get().is_none_or(|wakeup_at| at_ms < wakeup_at);
        if earlier {
            self.wakeup_at.set(Some(at_ms));
        }
        self.wake.notify_one();
        self.changed.notify_waiters();
    }

    /// Asks for the messages of the channel, without waiting for the confirmation.
    pub(crate) fn subscribe(&self) {
        if self.subscription.get() == Subscription::None {
            self.shared.client.subscribe(self.slot, self.channel.clone());
            self.subscription.set(Subscription::Requested);
        }
    }

    /// Returns when the channel is subscribed. A message published before that is lost, so the
    /// partition polls once more.
    pub(crate) async fn subscribed(&self) {
        self.subscribe();
        if self.subscription.get() == Subscription::Requested {
            self.shared.client.subscribed(&self.channel).await;
            self.subscription.set(Subscription::Confirmed);
            self.poll_now();
        }
    }

    async fn run(&self) {
        let (mut in_flight, mut completed) = (InFlight::new(self.shared.replicas), VecDeque::new());
        loop {
            if in_flight.is_empty() && completed.is_empty() {
                self.idle().await;
                // Lets other ready tasks add their requests to the batch.
                tokio::task::yield_now().await;
            }
            // A blocking waiter that got nothing must be back in the queue before the next batch is
            // filled, or younger waiters would be served first.
            if completed.iter().any(CompletedBatch::has_blocking) {
                completed.drain(..).for_each(|completed| self.deliver(completed));
            }
            self.shared.drain().await;
            self.send_batches(&mut in_flight);
            tokio::select! {
                biased;
                next = in_flight.next_completed(), if !in_flight.is_empty() => {
                    completed.extend(next);
                }
                // Yields first, so that the batch just filled is written before the replies are
                // delivered: Redis executes it while callers take their answers.
                () = tokio::task::yield_now(), if !completed.is_empty() => {
                    completed.drain(..).for_each(|completed| self.deliver(completed));
                }
                () = self.wake.notified(), if !in_flight.is_empty() => {}
                else => {}
            }
        }
    }

    /// Sends batches while there is a free sequence; a second batch only if it is large enough.
    fn send_batches<'a>(&'a self, in_flight: &mut InFlight<'a>) {
        while let Some(sequence) = in_flight.free_sequence()
            && (in_flight.is_empty()
                || self.backlog.get() >= SECOND_BATCH_MIN && !in_flight.is_slow())
        {
            let (batch, info) = self.fill(in_flight);
            if batch.is_empty() {
                break;
            }
            in_flight.add(sequence, info, Box::pin(self.execute(batch, sequence)));
        }
    }

    /// Whether the time for a poll has come. `idle` notices it too, but under load batches follow
    /// one another so closely that it is never reached.
    fn is_poll_due(&self) -> bool {
        let is_past = |at_ms| at_ms < self.shared.clock.now_ms();
        !self.waiters.borrow().is_empty()
            && (self.next_visible().is_some_and(is_past) || self.next_recheck() <= clock::instant())
    }

    /// When a job becomes visible here, as far as is known; `None` also while other partitions poll
    /// for all waiters.
    fn next_visible(&self) -> Option<u64> {
        let next =
            self.heads.borrow().next_visible_at().into_iter().chain(self.wakeup_at.get()).min();
        next.filter(|_| !self.polled_elsewhere.get())
    }

    /// Returns when there is something to send.
    async fn idle(&self) {
        let paused = self.poll_not_before.get().filter(|&until| until > clock::instant());
        if !self.queue.borrow().is_empty() || self.poll_wanted.get() && paused.is_none() {
            return;
        }
        if let (true, Some(until)) = (self.poll_wanted.get(), paused) {
            tokio::select! {
                () = self.wake.notified() => {}
                () = sleep_until(until.into()) => {}
            }
            return;
        }
        if self.waiters.borrow().is_empty() {
            let unused = async {
                sleep(LINGER).await;
                if self.waiters.borrow().is_empty()
                    && self.subscription.replace(Subscription::None) != Subscription::None
                {
                    self.shared.client.unsubscribe(&self.channel);
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = self.wake.notified() => {}
                () = unused => {}
            }
            return;
        }
        let (next, recheck) = (self.next_visible(), self.next_recheck());
        tokio::select! {
            () = self.wake.notified() => {}
            () = self.sleep_until_visible(next.unwrap_or(u64::MAX)), if next.is_some() => {
                self.bump_poll_epoch();
            }
            () = sleep_until(recheck.into()) => self.bump_poll_epoch(),
        }
    }

    /// Sleeps until this instant by Redis' clock, or to the end of the backoff if that is later.
    async fn sleep_until_visible(&self, at_ms: u64) {
        if let Some(poll_not_before) = self.poll_not_before.get() {
            sleep_until(poll_not_before.into()).await;
        }
        self.shared.clock.sleep_until(at_ms).await;
    }

    /// The first recheck after the last poll.
    fn next_recheck(&self) -> Instant {
        match self.last_poll.get().checked_duration_since(self.recheck) {
            None => self.recheck,
            Some(since) => {
                let passed = u32::try_from(since.as_secs() / RECHECK.as_secs()).unwrap_or(u32::MAX);
                self.recheck + RECHECK * passed.saturating_add(1)
            }
        }
    }
}
