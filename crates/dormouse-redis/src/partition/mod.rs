//! One partition of a topic: its line of asks, what is known of it, and the one script that is
//! under way to it at a time.
//!
//! Invariants
//! 1. At most one script of this server is under way to a partition. It has a number greater than
//!    all before it, and is sent again with that number until it is answered.
//! 2. Asks of one batch are done in their order; those of different batches in any.
//! 3. While a demand waits, a look comes at the latest when something becomes visible as far as
//!    this server knows, when a hint says so, and every few seconds.

mod ask;
pub(crate) mod demand;
mod flight;
mod heads;
mod land;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::Token;
use dormouse_core::limits::REPLY_BYTES_MAX;
use dormouse_core::topic::TopicName;
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, sleep_until, timeout};

pub(crate) use ask::{Ask, Effect, FLIGHT_BYTES_MAX, FLIGHT_JOBS_MAX, Raw, To};
pub(crate) use heads::Heads;

use crate::desk::Shared;
use crate::keys;
use crate::link::slot_of;
use crate::verb::nack::Ending;
use crate::verb::reserve::Look;
use crate::wire::config::Config;
use demand::Demand;
use flight::{Claim, Flight};

/// The batch an ask came with.
pub(crate) type BatchNo = u64;

/// How long who asks is kept waiting for a Redis that does not answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// A waiting demand is looked after at least this often: at every so many seconds of a time that
/// differs from partition to partition and server to server.
const RECHECK: Duration = Duration::from_secs(5);
/// How long a waiting demand is not looked after by itself when Redis refuses scripts.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How long a channel is listened to after the last demand.
const LINGER: Duration = Duration::from_secs(10);

struct Queued {
    batch: BatchNo,
    ask: Ask,
    since: Instant,
}

/// A partition, as this server sees it.
pub(crate) struct Partition {
    pub(crate) shared: Rc<Shared>,
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
    /// Priorities that can be given up, as a script said.
    pub(crate) droppable: RefCell<Option<Vec<u32>>>,
    queue: RefCell<VecDeque<Queued>>,
    demands: RefCell<BTreeMap<u64, Rc<Demand>>>,
    /// Demands must be looked after now.
    look: Cell<bool>,
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
            topic,
            slot: slot_of(tag.as_bytes()),
            shard: Bytes::copy_from_slice(&[high, mid, low]),
            keys: keys::fixed(&tag),
            channel: keys::channel(&tag),
            tag,
            place,
            config: RefCell::default(),
            heads: RefCell::default(),
            droppable: RefCell::default(),
            queue: RefCell::default(),
            demands: RefCell::default(),
            look: Cell::new(false),
            reasons: Cell::new(1),
            blocked: Cell::new(false),
            hinted: Cell::new(None),
            number: Cell::new(shared.first_number),
            subscription: Cell::new(Subscription::None),
            last_look: Cell::new(Instant::now()),
            not_before: Cell::new(None),
            pause: Cell::new(Duration::ZERO),
            recheck: Instant::now() + RECHECK.mul_f64(shared.jitter(1_000) as f64 / 1e3),
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
    pub(crate) fn ask(&self, batch: BatchNo, ask: Ask) {
        self.queue.borrow_mut().push_back(Queued { batch, ask, since: Instant::now() });
        self.news.notify_one();
    }

    /// Leases that nobody wants any more are given back unspent.
    pub(crate) fn give_back(&self, tokens: &[Token]) {
        if tokens.is_empty() {
            return;
        }
        let ending = |&token| Ending { token, delay_ms: None, priority: None, error: None };
        let endings = tokens.iter().map(ending).collect();
        // Nobody waits for the answer.
        let (to, _) = oneshot::channel();
        self.ask(self.shared.next_batch(), Ask::End { spends: false, endings, to });
    }

    /// A demand stands in line; it is looked after at once.
    pub(crate) fn demand(&self, demand: &Rc<Demand>) {
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
        loop {
            self.rest().await;
            // Who else is ready gets on board.
            tokio::task::yield_now().await;
            loop {
                let flight = self.board();
                if flight.is_empty() {
                    break;
                }
                self.fly(flight).await;
            }
        }
    }

    /// Ends when there is something to do.
    async fn rest(&self) {
        let paused = self.not_before.get().filter(|&until| until > Instant::now());
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
        let next = self.heads.borrow().next().into_iter().chain(self.hinted.get()).min();
        let next = next.filter(|_| !self.blocked.get());
        let recheck = self.next_recheck();
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

    /// Who goes with the next flight: those at the front, as long as the order within a batch is
    /// kept, and the demands if there is reason to look.
    fn board(&self) -> Flight {
        let mut flight = Flight::default();
        let mut phases: HashMap<BatchNo, u8> = HashMap::new();
        let mut held: HashSet<BatchNo> = HashSet::new();
        let mut queue = self.queue.borrow_mut();
        let mut left = Vec::new();
        while let Some(queued) = queue.pop_front() {
            let Queued { batch, ask, .. } = &queued;
            let fits = flight.weight.has_room(ask.weight());
            let in_order = phases.get(batch).is_none_or(|&phase| phase <= ask.phase());
            if held.contains(batch) || !fits || !in_order {
                held.insert(*batch);
                left.push(queued);
                if !fits {
                    break;
                }
                continue;
            }
            phases.insert(*batch, ask.phase());
            flight.weight.add(ask.weight());
            if ask.may_make_visible() {
                self.has_reason();
            }
            flight.asks.push(queued.ask);
        }
        for queued in left.into_iter().rev() {
            queue.push_front(queued);
        }
        drop(queue);
        flight.asks.sort_by_key(Ask::phase);
        let paused = self.not_before.get().is_some_and(|until| until > Instant::now());
        if self.look.get() && (!paused || !flight.asks.is_empty() || self.somebody_asks()) {
            self.claim(&mut flight);
        }
        flight
    }

    /// Whether somebody is here who does not wait.
    fn somebody_asks(&self) -> bool {
        self.demands.borrow().values().any(|demand| !demand.waits)
    }

    /// Adds looks for the demands, first come, first served.
    fn claim(&self, flight: &mut Flight) {
        let queue = self.queue.borrow();
        let held = |batch: BatchNo| queue.iter().any(|queued| queued.batch == batch);
        self.look.set(false);
        self.blocked.set(false);
        let mut demands = self.demands.borrow_mut();
        demands.retain(|_, demand| !demand.is_over());
        let mut room = FLIGHT_JOBS_MAX.saturating_sub(flight.weight.jobs).max(1);
        // Who is claimed here cannot be served elsewhere meanwhile, so each takes its share.
        let mut share = demands.len().div_ceil(usize::try_from(self.place.1).unwrap_or(1));
        let reason = self.reasons.get();
        let (free, claimed): (Vec<_>, Vec<_>) = demands
            .values()
            .filter(|demand| demand.wants_look(&self.tag, reason))
            .partition(|demand| !demand.is_claimed());
        if free.is_empty() {
            // They tell when they can be looked after. A look for the others only would keep these
            // from being looked after elsewhere.
            claimed.iter().for_each(|demand| demand.miss(&self.tag));
            self.blocked.set(!claimed.is_empty());
            return;
        }
        // One place is kept for those who do not wait: they must be answered soon.
        let spare = usize::from(free.iter().any(|demand| !demand.waits));
        for demand in demands.values() {
            // Who came first is served first, also if what is there is found by a look for another.
            let wants = demand.wants_look(&self.tag, reason);
            if !wants && (!demand.waits || demand.is_claimed()) {
                continue;
            }
            // What came before it in its batch is still in line.
            if held(demand.batch) {
                self.look.set(true);
                continue;
            }
            // Who waits gets its turn when those before it are served.
            if demand.waits && (share == 0 || room <= spare) {
                continue;
            }
            if room == 0 {
                self.look.set(true);
                continue;
            }
            if !demand.claim(&self.tag) {
                continue;
            }
            let max = demand.max.min(room);
            room -= max;
            share = share.saturating_sub(usize::from(demand.waits));
            match flight.claims.last_mut() {
                Some(claim) if claim.look.ttr_ms == demand.ttr_ms => {
                    claim.look.max += max;
                    claim.look.waits |= demand.waits;
                    claim.demands.push(Rc::clone(demand));
                }
                _ => {
                    let ttr_ms = demand.ttr_ms;
                    let (room, waits) = (REPLY_BYTES_MAX, demand.waits);
                    let look = Look { max, ttr_ms, room, bound: None, waits };
                    let demands = vec![Rc::clone(demand)];
                    flight.claims.push(Claim { demands, look, reason });
                }
            }
        }
        if !flight.claims.is_empty() {
            self.blocked.set(false);
            self.hinted.set(None);
            self.last_look.set(Instant::now());
        }
    }

    /// Sends a flight until it has landed.
    async fn fly(&self, mut flight: Flight) {
        let number = self.number.get() + 1;
        self.number.set(number);
        loop {
            let encoded = match flight.encode(self, number) {
                Ok(encoded) => encoded,
                Err(error) => {
                    flight.shed(self, &error);
                    if flight.is_empty() {
                        return;
                    }
                    continue;
                }
            };
            let mut call = std::pin::pin!(self.shared.link.call(&encoded.call));
            let landed = match timeout(PATIENCE, &mut call).await {
                Ok(landed) => landed,
                Err(_) => {
                    self.lose_patience(&mut flight);
                    self.go_on(call.as_mut()).await
                }
            };
            match landed {
                Err(error) => return self.crash(flight, &error.into()),
                Ok(landed) => match self.land(&mut flight, landed, encoded.config) {
                    Ok(true) => {
                        self.pause.set(Duration::ZERO);
                        self.not_before.set(None);
                        return;
                    }
                    Ok(false) => {}
                    Err(error) => return self.crash(flight, &error),
                },
            }
        }
    }

    /// Waits on for a flight nobody waits for any more; who comes meanwhile is told after a while.
    async fn go_on<F: Future>(&self, mut call: std::pin::Pin<&mut F>) -> F::Output {
        loop {
            match timeout(Duration::from_secs(1), call.as_mut()).await {
                Ok(landed) => return landed,
                Err(_) => self.turn_away(),
            }
        }
    }

    /// Those who waited too long in line are answered.
    fn turn_away(&self) {
        let late = |queued: &Queued| queued.since.elapsed() >= PATIENCE;
        let mut queue = self.queue.borrow_mut();
        while queue.front().is_some_and(late) {
            if let Some(mut queued) = queue.pop_front() {
                queued.ask.fail(silent());
            }
        }
        drop(queue);
        for demand in self.demands.borrow().values() {
            if !demand.waits && demand.since.elapsed() >= PATIENCE && !demand.is_claimed() {
                demand.fail(&silent());
            }
        }
    }

    /// Those on board are told that it may or may not have happened.
    fn lose_patience(&self, flight: &mut Flight) {
        for ask in &mut flight.asks {
            let error = if ask.is_change() { unconfirmed() } else { silent() };
            ask.fail(error);
        }
        // Those who wait may be served elsewhere; what this flight takes for them is given back.
        for claim in &mut flight.claims {
            for demand in claim.demands.drain(..) {
                demand.fail(&silent());
            }
        }
        self.turn_away();
    }

    /// The flight cannot land. The next look for those who wait comes after a pause that grows: a
    /// Redis that refuses scripts would be asked thousands of times per second.
    fn crash(&self, mut flight: Flight, error: &Error) {
        let pause = (self.pause.get() * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        self.pause.set(pause);
        self.not_before.set(Some(Instant::now() + pause));
        flight.fail(error);
        for demand in flight.claims.iter().flat_map(|claim| &claim.demands) {
            demand.fail(error);
        }
    }
}

pub(crate) fn silent() -> Error {
    Error::unavailable(format!(
        "Redis has not answered for {} s; it is asked again and again, so try later",
        PATIENCE.as_secs()
    ))
}

fn unconfirmed() -> Error {
    Error::new(
        Code::Unconfirmed,
        format!(
            "Redis has not answered for {} s: the change may or may not have happened, or happen \
             yet; look before you send it again",
            PATIENCE.as_secs()
        ),
    )
}
