//! One partition of a topic: its line of asks, what is known of it, and the flights to it.
//!
//! Invariants
//! 1. A runway has at most one flight in the air: a script of this server under the runway's name.
//!    It has a number greater than all before it, and is sent again with that number until it is
//!    answered.
//! 2. Asks of one batch are done in their order, so they are on one runway at a time; those of
//!    different batches are done in any.
//! 3. While a demand waits, a look comes at the latest when something becomes visible as far as
//!    this server knows, when a hint says so, and every few seconds.
//! 4. While a demand is in the air that waits, no other demand is: who came first is served first.
//! 5. Answers are handed out in the order in which scripts were done, so that the last look tells
//!    the truth. Where the order is not known, nothing is.

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

pub(crate) use execute::{PATIENCE, silent};
pub(crate) use heads::Heads;
pub(crate) use in_flight::ENOUGH;
pub(crate) use reply_to::To;
pub(crate) use request::{Ask, Effect, FLIGHT_BYTES_MAX, FLIGHT_JOBS_MAX, Raw};

use crate::clock;
use crate::cluster::slot_of;
use crate::codec::nack::Ending;
use crate::dispatch::Shared;
use crate::keys;
use crate::wire::config::Config;
use decode::Arrival;
use in_flight::Air;
use waiter::Demand;

/// The batch an ask came with.
pub(crate) type BatchNo = u64;

/// A waiting demand is looked after at least this often: at every so many seconds of a time that
/// differs from partition to partition and server to server.
const RECHECK: Duration = Duration::from_secs(5);
/// How long a channel is listened to after the last demand.
const LINGER: Duration = Duration::from_secs(10);

struct Queued {
    /// `None` = it came alone, so there is no order to keep.
    batch: Option<BatchNo>,
    ask: Ask,
    since: Instant,
}

/// A partition, as this server sees it.
pub(crate) struct Partition {
    pub(crate) shared: Rc<Shared>,
    /// Tells it from all others of this backend.
    pub(crate) no: u64,
    /// `None` = it holds locks.
    pub(crate) topic: Option<TopicName>,
    pub(crate) tag: String,
    pub(crate) slot: u16,
    /// Its number, three bytes.
    pub(crate) shard: Bytes,
    pub(crate) keys: [Bytes; 6],
    pub(crate) channel: Bytes,
    /// Which of how many it is.
    place: (u64, u64),
    pub(crate) config: RefCell<Config>,
    pub(crate) heads: RefCell<Heads>,
    queue: RefCell<VecDeque<Queued>>,
    demands: RefCell<BTreeMap<u64, Rc<Demand>>>,
    /// Demands must be looked after now.
    look: Cell<bool>,
    /// Items that came in line since the last boarding, and enough if somebody was left behind for
    /// want of room. Others who were left behind wait for a landing.
    came: Cell<usize>,
    /// Counts the reasons to look: who was looked after since the last needs no other look.
    reasons: Cell<u64>,
    /// Another partition looks for all demands: it tells when it is done.
    blocked: Cell<bool>,
    /// Somebody said that something becomes visible then.
    hinted: Cell<Option<u64>>,
    number: Cell<u64>,
    subscription: Cell<Subscription>,
    last_look: Cell<Instant>,
    /// After a flight that could not land, no look by itself before then.
    not_before: Cell<Option<Instant>>,
    pause: Cell<Duration>,
    /// One of the instants of rechecks.
    recheck: Instant,
    news: Notify,
    /// For whoever waits for a change that no demand stands for: locks.
    pub(crate) changed: Notify,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Subscription {
    None,
    Asked,
    Confirmed,
}

impl Partition {
    /// A partition with its task.
    pub(crate) fn start(
        shared: &Rc<Shared>,
        topic: Option<TopicName>,
        tag: String,
        shard: u32,
        place: (u64, u64),
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
            place,
            config: RefCell::default(),
            heads: RefCell::default(),
            queue: RefCell::default(),
            demands: RefCell::default(),
            look: Cell::new(false),
            came: Cell::new(0),
            reasons: Cell::new(1),
            blocked: Cell::new(false),
            hinted: Cell::new(None),
            number: Cell::new(shared.first_number),
            subscription: Cell::new(Subscription::None),
            last_look: Cell::new(clock::instant()),
            not_before: Cell::new(None),
            pause: Cell::new(Duration::ZERO),
            recheck: clock::instant() + RECHECK.mul_f64(shared.jitter(1_000) as f64 / 1e3),
            news: Notify::new(),
            changed: Notify::new(),
            shared: Rc::clone(shared),
        });
        let task = Rc::clone(&partition);
        tokio::task::spawn_local(async move { task.run().await });
        partition
    }

    /// This partition's share of a limit of the topic.
    pub(crate) fn share(&self, max: Option<u64>) -> Option<u64> {
        let (index, of) = self.place;
        max.map(|max| max / of + u64::from(index < max % of))
    }

    /// Puts an ask in line.
    pub(crate) fn ask(&self, batch: impl Into<Option<BatchNo>>, ask: Ask) {
        self.came.set(self.came.get() + ask.items());
        let queued = Queued { batch: batch.into(), ask, since: clock::instant() };
        self.queue.borrow_mut().push_back(queued);
        self.news.notify_one();
    }

    /// Leases that nobody wants any more are given back unspent.
    pub(crate) fn give_back(&self, tokens: &[Token]) {
        if tokens.is_empty() {
            return;
        }
        let ending = |&token| Ending {
            token,
            delay_ms: None,
            priority: None,
            error: None,
            is_uncounted: false,
        };
        let endings = tokens.iter().map(ending).collect();
        self.ask(None, Ask::End { spends: false, endings, to: To::Nobody });
    }

    /// A demand stands in line; it is looked after at once.
    pub(crate) fn demand(&self, demand: &Rc<Demand>) {
        self.came.set(self.came.get() + 1);
        self.demands.borrow_mut().insert(demand.no, Rc::clone(demand));
        self.look_again();
    }

    /// A demand wants nothing from here any more.
    pub(crate) fn undemand(&self, no: u64) {
        self.demands.borrow_mut().remove(&no);
    }

    /// Reserves that wait here.
    pub(crate) fn waiters(&self) -> usize {
        self.demands.borrow().values().filter(|demand| demand.waits).count()
    }

    /// Something may be visible.
    pub(crate) fn look_now(&self) {
        self.has_reason();
        self.news.notify_one();
    }

    /// Somebody has not been looked after yet.
    pub(crate) fn look_again(&self) {
        self.look.set(true);
        self.news.notify_one();
    }

    fn has_reason(&self) {
        self.look.set(true);
        self.reasons.set(self.reasons.get() + 1);
    }

    /// Somebody said that something becomes visible then.
    pub(crate) fn hint(&self, at_ms: u64) {
        let earlier = self.hinted.get().is_none_or(|hinted| at_ms < hinted);
        if earlier {
            self.hinted.set(Some(at_ms));
        }
        self.news.notify_one();
        self.changed.notify_waiters();
    }

    /// Wants to hear the channel.
    pub(crate) fn subscribe(&self) {
        if self.subscription.get() == Subscription::None {
            self.shared.link.subscribe(self.slot, self.channel.clone());
            self.subscription.set(Subscription::Asked);
        }
    }

    /// Listens to the channel. Whoever begins to wait must look once more after that.
    pub(crate) async fn listen(&self) {
        self.subscribe();
        if self.subscription.get() == Subscription::Asked {
            self.shared.link.subscribed(&self.channel).await;
            self.subscription.set(Subscription::Confirmed);
            self.look_now();
        }
    }

    async fn run(&self) {
        let (mut air, mut landed) = (Air::new(self.shared.replicas), VecDeque::new());
        loop {
            if air.is_empty() && landed.is_empty() {
                self.rest().await;
                // Who else is ready gets on board.
                tokio::task::yield_now().await;
            }
            // Who waits is in line again only after it was given nothing: else those who came
            // later would be served before.
            if landed.iter().any(Arrival::has_waiters) {
                landed.drain(..).for_each(|arrival| self.hand_out(arrival));
            }
            self.shared.fetch().await;
            self.depart(&mut air);
            tokio::select! {
                biased;
                arrival = air.landing(), if !air.is_empty() => landed.extend(arrival),
                // What has just left is sent first: Redis works while those are answered who have
                // landed, and so do they.
                () = tokio::task::yield_now(), if !landed.is_empty() => {
                    landed.drain(..).for_each(|arrival| self.hand_out(arrival));
                }
                () = self.news.notified(), if !air.is_empty() => {}
                else => {}
            }
        }
    }

    /// Lets those in line leave, as long as there is a runway for them; beside another flight only
    /// if they are enough.
    fn depart<'a>(&'a self, air: &mut Air<'a>) {
        while let Some(runway) = air.free_runway()
            && (air.is_empty() || self.came.get() >= ENOUGH && !air.is_slow())
        {
            let (flight, manifest) = self.board(air);
            if flight.is_empty() {
                break;
            }
            air.add(runway, manifest, Box::pin(self.fly(flight, runway)));
        }
    }

    /// Whether a look is due by itself: flights may follow each other so closely that nothing rests
    /// for long, and they need not look.
    fn is_look_due(&self) -> bool {
        let is_past = |at_ms| at_ms < self.shared.clock.now_ms();
        !self.demands.borrow().is_empty()
            && (self.next_visible().is_some_and(is_past) || self.next_recheck() <= clock::instant())
    }

    /// When something becomes visible here, as far as is known, unless another partition looks.
    fn next_visible(&self) -> Option<u64> {
        let next = self.heads.borrow().next().into_iter().chain(self.hinted.get()).min();
        next.filter(|_| !self.blocked.get())
    }

    /// Ends when there is something to do.
    async fn rest(&self) {
        let paused = self.not_before.get().filter(|&until| until > clock::instant());
        if !self.queue.borrow().is_empty() || self.look.get() && paused.is_none() {
            return;
        }
        if let (true, Some(until)) = (self.look.get(), paused) {
            tokio::select! {
                () = self.news.notified() => {}
                () = sleep_until(until.into()) => {}
            }
            return;
        }
        if self.demands.borrow().is_empty() {
            let unused = async {
                sleep(LINGER).await;
                if self.demands.borrow().is_empty()
                    && self.subscription.replace(Subscription::None) != Subscription::None
                {
                    self.shared.link.unsubscribe(&self.channel);
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = self.news.notified() => {}
                () = unused => {}
            }
            return;
        }
        let (next, recheck) = (self.next_visible(), self.next_recheck());
        tokio::select! {
            () = self.news.notified() => {}
            () = self.until(next.unwrap_or(u64::MAX)), if next.is_some() => self.has_reason(),
            () = sleep_until(recheck.into()) => self.has_reason(),
        }
    }

    /// That instant by Redis' clock, unless a pause lasts longer.
    async fn until(&self, at_ms: u64) {
        if let Some(not_before) = self.not_before.get() {
            sleep_until(not_before.into()).await;
        }
        self.shared.clock.until(at_ms).await;
    }

    /// The first recheck after the last look.
    fn next_recheck(&self) -> Instant {
        match self.last_look.get().checked_duration_since(self.recheck) {
            None => self.recheck,
            Some(since) => {
                let passed = u32::try_from(since.as_secs() / RECHECK.as_secs()).unwrap_or(u32::MAX);
                self.recheck + RECHECK * passed.saturating_add(1)
            }
        }
    }
}
