//! The scheduler: decides which requests go to a partition in one script, and when. It is a state
//! machine without clock, socket or task. Requests, replies, wakeups and the time go in; `Action`s
//! come out, which the task of a partition performs (`partition`).
//!
//! A script batch belongs to a *sequence*. The sequence's name and the batch's number go with the
//! script, and Redis keeps, per sequence, the number and the reply of the last batch executed. So a
//! batch can be sent any number of times and is executed once: a repeated number is answered with
//! the kept reply, a smaller one is refused.
//!
//! Invariants
//! 1. A sequence has at most one batch in flight. Its number is greater than all before it, and it
//!    is sent with that number until it is answered.
//! 2. Requests of one submission are executed in their order, so they are in one sequence at a
//!    time. Requests of different submissions are executed in any order.
//! 3. While a waiter is parked, the partition polls at the latest when a job becomes visible as far
//!    as this server knows, when a wakeup arrives, and every few seconds.
//! 4. While a poll for a blocking waiter is in flight, no other poll is sent: the oldest is served
//!    first.
//! 5. Replies are delivered in the order in which the scripts were executed, so that `heads` holds
//!    what the last poll saw. Where that order is unknown, `heads` is invalidated.
//! 6. Every request leaves exactly once: in a batch that is delivered, failed or timed out, or
//!    refused because it waited too long to be sent.
//! 7. While a partition has schedules as far as this server knows, ticks are given at the latest
//!    when one is due as far as it knows, when a script tells of one, and every few seconds.

mod batch;
mod heads;
mod in_flight;
mod polls;
#[cfg(test)]
mod tests;
mod ticks;
mod waiters;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

pub(crate) use batch::{BATCH_BYTES_MAX, BATCH_JOBS_MAX, Batch, Request, SharedPoll, Weight};
pub(crate) use heads::{Heads, HeadsReport, Rank};
pub(crate) use ticks::TicksReport;
pub(crate) use waiters::NewWaiter;

use in_flight::InFlight;
use ticks::Ticks;
use waiters::Waiter;

/// The index of a partition in the scheduler.
pub(crate) type PartitionNo = usize;
/// Grows with every waiter: the smallest is served first.
pub(crate) type WaiterNo = u64;
/// The number of a submission: a batch of requests that a caller handed over together.
pub(crate) type SubmissionNo = u64;

/// How long a request waits for a Redis that does not answer.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Queued items that are worth a second batch while one is in flight. For fewer, the fixed cost of
/// a script exceeds the gain.
pub(crate) const SECOND_BATCH_MIN: usize = 20;
/// Batches in flight per partition. With one, Redis falls asleep between two batches, and waking it
/// costs more than executing them.
const SEQUENCES_MAX: u8 = 2;
/// While a batch has been in flight for this long, no second one is sent, and the waiters that it
/// polls for may be served elsewhere.
const SLOW_REPLY: Duration = Duration::from_millis(500);
/// A partition with waiters polls again this long after its last poll, and a random time later, so
/// that partitions and servers do not poll in step.
pub(crate) const RECHECK: Duration = Duration::from_secs(5);
pub(crate) const RECHECK_JITTER: Duration = Duration::from_secs(1);
/// How long a channel stays subscribed after the last use of the partition.
const LINGER: Duration = Duration::from_secs(10);
/// How long blocking waiters cause no poll after Redis refused a script.
const POLL_BACKOFF_MIN: Duration = Duration::from_millis(100);
const POLL_BACKOFF_MAX: Duration = Duration::from_secs(2);
/// How often queued requests are checked for their timeout while Redis does not answer.
const REFUSE_EVERY: Duration = Duration::from_secs(1);

/// The present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Now {
    /// By this machine's steady clock, since an arbitrary instant.
    pub(crate) steady: Duration,
    /// By Redis' clock, as far as is known.
    pub(crate) redis_ms: u64,
}

/// What the task of a partition is to do.
#[derive(Debug)]
pub(crate) enum Action<Q, R> {
    /// Encode the batch in flight in this sequence, and send it.
    Send { sequence: u8 },
    /// Deliver the reply of a batch, then call `delivered`.
    Deliver { batch: Batch<Q>, reply: R, is_reordered: bool },
    /// Redis does not answer: answer the requests of this batch, and these immediate waiters. If
    /// the batch was never sent, call `clear`.
    TimeOut { sequence: u8, waiters: Vec<WaiterNo> },
    /// Answer these as not executed: they waited too long to be sent.
    Refuse { requests: Vec<Q>, waiters: Vec<WaiterNo> },
    /// Nobody needs the partition's wakeups any more.
    Unsubscribe,
    /// Give a portion of the ticks that are due, then call `ticks_given` or `ticks_failed`.
    GiveTicks,
}

/// When the task of a partition is to ask for actions again: at the earlier of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WakeAt {
    pub(crate) steady: Option<Duration>,
    /// By Redis' clock.
    pub(crate) redis_ms: Option<u64>,
}

impl WakeAt {
    /// At the earliest of both.
    fn or_earlier(self, other: WakeAt) -> WakeAt {
        WakeAt {
            steady: self.steady.into_iter().chain(other.steady).min(),
            redis_ms: self.redis_ms.into_iter().chain(other.redis_ms).min(),
        }
    }
}

struct Queued<Q> {
    /// `None` = it was submitted alone, so there is no order to keep.
    submission: Option<SubmissionNo>,
    request: Q,
    since: Duration,
}

/// A batch that was answered.
struct Completed<Q, R> {
    batch: Batch<Q>,
    reply: R,
    is_reordered: bool,
}

struct Partition<Q, R> {
    /// How many partitions its topic has.
    of: usize,
    queue: VecDeque<Queued<Q>>,
    waiters: BTreeSet<WaiterNo>,
    in_flight: Vec<InFlight<Q>>,
    completed: VecDeque<Completed<Q, R>>,
    heads: Heads,
    /// The next batch should poll for the waiters.
    poll_wanted: bool,
    /// Items queued since the last batch was filled, or `SECOND_BATCH_MIN` if that one had no room
    /// for all. Requests left behind for their order do not count: they wait for a reply.
    backlog: usize,
    /// Grows whenever a job may have become visible. A waiter polled for in this epoch needs no
    /// other poll.
    poll_epoch: u64,
    /// Other partitions poll for all waiters; each asks for a poll here when it is done.
    polled_elsewhere: bool,
    /// The earliest instant at which, by a wakeup, a job becomes visible.
    wakeup_at: Option<u64>,
    /// The number of the last batch, over all sequences.
    last_number: u64,
    last_poll: Duration,
    /// After a failed batch, blocking waiters alone cause no poll before this instant.
    poll_not_before: Option<Duration>,
    poll_backoff: Duration,
    /// How long after a poll the next is due.
    recheck: Duration,
    last_used: Duration,
    is_subscribed: bool,
    ticks: Ticks,
}

/// The scheduler of all partitions. `Q` is a request, `R` the reply of a script.
pub(crate) struct Scheduler<Q, R> {
    sequences: u8,
    /// The greatest number of any batch. A partition that is forgotten and added again begins after
    /// it: Redis would take a number that it has seen for a repeat.
    last_number: u64,
    partitions: Vec<Partition<Q, R>>,
    waiters: BTreeMap<WaiterNo, Waiter>,
    /// Partitions that have schedules.
    ticking: u32,
    news: News,
}

/// What concerns others than the partition that the last input was for.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Partitions that may have something to do.
    pub(crate) woken: Vec<PartitionNo>,
    /// Waiters that a partition no longer polls for.
    pub(crate) freed: Vec<WaiterNo>,
}

impl<Q: Request, R> Scheduler<Q, R> {
    /// With replicas, calls that wait for them use a connection of their own, and the order of
    /// execution is unknown; so only one batch is in flight. Batches are numbered from
    /// `first_number`.
    pub(crate) fn new(replicas: u32, first_number: u64) -> Scheduler<Q, R> {
        Scheduler {
            sequences: if replicas == 0 { SEQUENCES_MAX } else { 1 },
            last_number: first_number,
            partitions: Vec::new(),
            waiters: BTreeMap::new(),
            ticking: 0,
            news: News::default(),
        }
    }

    /// Adds a partition, one of `of` of its topic. It is rechecked this long after its last poll.
    pub(crate) fn add_partition(&mut self, of: usize, recheck: Duration, now: Now) -> PartitionNo {
        self.partitions.push(Partition {
            of: of.max(1),
            queue: VecDeque::new(),
            waiters: BTreeSet::new(),
            in_flight: Vec::new(),
            completed: VecDeque::new(),
            heads: Heads::default(),
            poll_wanted: false,
            backlog: 0,
            poll_epoch: 1,
            polled_elsewhere: false,
            wakeup_at: None,
            last_number: self.last_number,
            last_poll: now.steady,
            poll_not_before: None,
            poll_backoff: Duration::ZERO,
            recheck,
            last_used: now.steady,
            is_subscribed: false,
            ticks: Ticks::default(),
        });
        self.partitions.len() - 1
    }

    #[expect(clippy::indexing_slicing, reason = "numbers come from `add_partition` only")]
    fn at(&mut self, no: PartitionNo) -> &mut Partition<Q, R> {
        &mut self.partitions[no]
    }

    #[expect(clippy::indexing_slicing, reason = "numbers come from `add_partition` only")]
    fn get(&self, no: PartitionNo) -> &Partition<Q, R> {
        &self.partitions[no]
    }

    /// Queues a request.
    pub(crate) fn submit(
        &mut self,
        no: PartitionNo,
        submission: Option<SubmissionNo>,
        request: Q,
        now: Now,
    ) {
        let partition = self.at(no);
        partition.backlog += request.items();
        partition.last_used = now.steady;
        partition.queue.push_back(Queued { submission, request, since: now.steady });
    }

    /// A job may have become visible: polls for all waiters.
    pub(crate) fn poll_now(&mut self, no: PartitionNo) {
        self.at(no).bump_poll_epoch();
    }

    /// A wakeup: a job becomes visible at this instant by Redis' clock.
    pub(crate) fn wakeup(&mut self, no: PartitionNo, at_ms: u64) {
        let wakeup_at = &mut self.at(no).wakeup_at;
        *wakeup_at = Some(wakeup_at.map_or(at_ms, |known| known.min(at_ms)));
    }

    /// Somebody needs the wakeups of a partition. True = it is to be subscribed now.
    pub(crate) fn subscribe(&mut self, no: PartitionNo, now: Now) -> bool {
        let partition = self.at(no);
        partition.last_used = now.steady;
        !std::mem::replace(&mut partition.is_subscribed, true)
    }

    /// What is known of the first jobs.
    pub(crate) fn heads_mut(&mut self, no: PartitionNo) -> &mut Heads {
        &mut self.at(no).heads
    }

    /// Whether Redis has not answered about this partition for a while.
    pub(crate) fn is_away(&self, no: PartitionNo, now: Now) -> bool {
        self.get(no).is_slow(now)
    }

    pub(crate) fn take_news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }

    /// The next thing to do for a partition; `None` = nothing until `wake_at` or another input.
    pub(crate) fn next_action(&mut self, no: PartitionNo, now: Now) -> Option<Action<Q, R>> {
        // A blocking waiter that got nothing must be back in line before the next batch is filled,
        // or younger waiters would be served first.
        if self.get(no).completed.iter().any(|completed| completed.batch.waits()) {
            return self.deliver_next(no);
        }
        self.free_waiters(no, now);
        if let Some(action) = self.time_out_next(no, now).or_else(|| self.refuse_late(no, now)) {
            return Some(action);
        }
        self.fill_next(no, now);
        let partition = self.at(no);
        if let Some(entry) = partition.in_flight.iter_mut().find(|entry| entry.to_send) {
            (entry.to_send, entry.sent_at) = (false, now.steady);
            return Some(Action::Send { sequence: entry.sequence });
        }
        if partition.is_subscribed && partition.is_unused(now) {
            partition.is_subscribed = false;
            return Some(Action::Unsubscribe);
        }
        if partition.ticks.begin(now) {
            return Some(Action::GiveTicks);
        }
        // After the next batch was sent: Redis executes it while callers take their answers.
        self.deliver_next(no)
    }

    fn deliver_next(&mut self, no: PartitionNo) -> Option<Action<Q, R>> {
        let Completed { batch, reply, is_reordered } = self.at(no).completed.pop_front()?;
        Some(Action::Deliver { batch, reply, is_reordered })
    }

    /// The reply of a batch has been delivered.
    pub(crate) fn delivered(&mut self, no: PartitionNo, is_reordered: bool) {
        if is_reordered {
            // Two batches may have been executed in either order, so the heads may be outdated.
            let partition = self.at(no);
            partition.heads.invalidate();
            partition.bump_poll_epoch();
        }
    }

    /// When to ask for actions again, if there is no other input.
    pub(crate) fn wake_at(&self, no: PartitionNo, now: Now) -> WakeAt {
        let partition = self.get(no);
        let unused = partition.is_subscribed.then(|| partition.last_used + LINGER);
        if !partition.in_flight.is_empty() {
            let is_timed_out = partition.in_flight.iter().any(|entry| entry.is_timed_out);
            let waiting_since = if is_timed_out { self.oldest_immediate(no) } else { None };
            let steady = partition.reply_deadline(waiting_since, now);
            return WakeAt { steady, redis_ms: None };
        }
        let paused = partition.poll_not_before.filter(|&until| until > now.steady);
        let wake_at = if partition.waiters.is_empty() {
            WakeAt { steady: unused, redis_ms: None }
        } else if paused.is_some() {
            WakeAt { steady: paused, redis_ms: None }
        } else {
            WakeAt {
                steady: Some(partition.last_poll + partition.recheck),
                redis_ms: partition.next_visible(),
            }
        };
        wake_at.or_earlier(partition.ticks.wake_at())
    }
}

impl<Q: Request, R> Partition<Q, R> {
    fn bump_poll_epoch(&mut self) {
        self.poll_wanted = true;
        self.poll_epoch += 1;
    }

    /// Whether blocking waiters must not cause a poll yet.
    fn is_paused(&self, now: Now) -> bool {
        self.poll_not_before.is_some_and(|until| until > now.steady)
    }

    /// Whether the time for a poll has come.
    fn is_poll_due(&self, now: Now) -> bool {
        !self.waiters.is_empty()
            && (self.next_visible().is_some_and(|at_ms| at_ms <= now.redis_ms)
                || self.last_poll + self.recheck <= now.steady)
    }

    /// When a job becomes visible here, as far as is known; `None` also while other partitions poll
    /// for all waiters.
    fn next_visible(&self) -> Option<u64> {
        let next = self.heads.next_visible_at().into_iter().chain(self.wakeup_at).min();
        next.filter(|_| !self.polled_elsewhere)
    }

    fn is_unused(&self, now: Now) -> bool {
        self.waiters.is_empty() && self.last_used + LINGER <= now.steady
    }
}
