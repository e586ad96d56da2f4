//! The script batches of a partition that Redis has not answered yet.
//!
//! A second batch hides the round trip: while Redis executes one, the other is on its way or
//! already in the socket. Each has a sequence of its own, so that either can be sent again alone.
//! Both travel on one connection, so they are executed, and answered, in the order in which they
//! were sent, unless one was sent again beside the other: then its place in the order is unknown.
//!
//! After `REPLY_TIMEOUT` the requests of a batch are answered without it. From then on no copy of
//! it can be executed, because scripts refuse one that is older than `BATCH_AGE_MS_MAX`. The same
//! bytes are still sent until they are answered: to learn when Redis is back, and to release what
//! the batch may have reserved in time. They are not encoded again, which would make them young. If
//! the batch was never sent, an empty one takes its place and number.

use std::time::Duration;

use super::{
    Action, Batch, Completed, Now, POLL_BACKOFF_MAX, POLL_BACKOFF_MIN, Partition, PartitionNo,
    REFUSE_EVERY, REPLY_TIMEOUT, Request, SECOND_BATCH_MIN, SLOW_REPLY, Scheduler, SubmissionNo,
    WaiterNo,
};

/// The least time that passes.
const TICK: Duration = Duration::from_millis(1);

pub(super) struct InFlight<Q> {
    pub(super) sequence: u8,
    pub(super) number: u64,
    pub(super) batch: Batch<Q>,
    /// The submissions that have requests in it.
    pub(super) submissions: Vec<SubmissionNo>,
    /// It polls for a blocking waiter.
    pub(super) waits: bool,
    /// Another batch was in flight at the same time.
    was_concurrent: bool,
    /// It was sent more than once, so it may have been executed long before the reply.
    was_resent: bool,
    /// When it was last encoded.
    pub(super) sent_at: Duration,
    pub(super) is_timed_out: bool,
    /// The waiters it polls for may be served elsewhere.
    pub(super) is_freed: bool,
    /// It is to be sent by the next action.
    pub(super) to_send: bool,
}

impl<Q> InFlight<Q> {
    /// One that timed out is slow until it is answered, also if an empty one was sent in its place.
    pub(super) fn is_slow(&self, now: Now) -> bool {
        self.is_timed_out || !self.to_send && self.sent_at + SLOW_REPLY < now.steady
    }
}

impl<Q: Request, R> Scheduler<Q, R> {
    /// Fills batches while there is a free sequence; a second batch only if it is large enough.
    pub(super) fn fill_next(&mut self, no: PartitionNo, now: Now) {
        let sequences = self.sequences;
        let partition = self.get(no);
        let is_free =
            |sequence: &u8| partition.in_flight.iter().all(|entry| entry.sequence != *sequence);
        let Some(sequence) = (0..sequences).find(is_free) else {
            return;
        };
        let is_worth_it = partition.in_flight.is_empty()
            || partition.backlog >= SECOND_BATCH_MIN && !partition.is_slow(now);
        if !is_worth_it {
            return;
        }
        let (batch, submissions) = self.fill(no, now);
        if batch.is_empty() {
            return;
        }
        let partition = self.at(no);
        let was_concurrent = !partition.in_flight.is_empty();
        for entry in &mut partition.in_flight {
            entry.was_concurrent = true;
        }
        partition.last_number += 1;
        partition.last_used = now.steady;
        partition.in_flight.push(InFlight {
            sequence,
            number: partition.last_number,
            waits: batch.waits(),
            batch,
            submissions,
            was_concurrent,
            was_resent: false,
            sent_at: now.steady,
            is_timed_out: false,
            is_freed: false,
            to_send: true,
        });
        self.last_number = self.last_number.max(self.get(no).last_number);
    }

    /// The batch in flight in a sequence, and its number.
    pub(crate) fn batch(&mut self, no: PartitionNo, sequence: u8) -> Option<(u64, &mut Batch<Q>)> {
        let entry = self.at(no).entry(sequence)?;
        Some((entry.number, &mut entry.batch))
    }

    /// Nothing of the batch was executed: it is to be sent again, unless it has timed out.
    pub(crate) fn again(&mut self, no: PartitionNo, sequence: u8) {
        let Some(entry) = self.at(no).entry(sequence) else {
            return;
        };
        if entry.is_timed_out {
            self.remove(no, sequence);
        } else {
            (entry.to_send, entry.was_resent) = (true, true);
        }
    }

    /// The batch was executed, and answered with this reply. `was_resent`: it was sent more than
    /// once.
    pub(crate) fn completed(&mut self, no: PartitionNo, sequence: u8, reply: R, was_resent: bool) {
        let Some(entry) = self.remove(no, sequence) else {
            return;
        };
        let is_reordered = entry.was_concurrent && (entry.was_resent || was_resent);
        let partition = self.at(no);
        partition.poll_backoff = Duration::ZERO;
        partition.poll_not_before = None;
        partition.completed.push_back(Completed { batch: entry.batch, reply, is_reordered });
    }

    /// Redis refused the batch. Returns it and the immediate waiters to be answered. Polls back
    /// off, or blocking waiters would poll a Redis that refuses scripts thousands of times per
    /// second.
    pub(crate) fn failed(
        &mut self,
        no: PartitionNo,
        sequence: u8,
        now: Now,
    ) -> Option<(Batch<Q>, Vec<WaiterNo>)> {
        let mut batch = self.remove(no, sequence)?.batch;
        self.back_off(no, now);
        let waiters = self.drop_polls(no, &mut batch);
        Some((batch, waiters))
    }

    /// Delays polls after a failure.
    pub(crate) fn back_off(&mut self, no: PartitionNo, now: Now) {
        let partition = self.at(no);
        partition.poll_backoff =
            (partition.poll_backoff * 2).clamp(POLL_BACKOFF_MIN, POLL_BACKOFF_MAX);
        partition.poll_not_before = Some(now.steady + partition.poll_backoff);
    }

    /// The batch was never sent, and its requests have been answered: an empty one is sent in its
    /// place, to learn when Redis is back.
    pub(crate) fn clear(&mut self, no: PartitionNo, sequence: u8) {
        if let Some(entry) = self.at(no).entry(sequence) {
            entry.batch = Batch::default();
            entry.to_send = true;
        }
    }

    /// Nothing is left of the batch, and it was never sent.
    pub(crate) fn cancel(&mut self, no: PartitionNo, sequence: u8) {
        self.remove(no, sequence);
    }

    fn remove(&mut self, no: PartitionNo, sequence: u8) -> Option<InFlight<Q>> {
        let in_flight = &mut self.at(no).in_flight;
        let index = in_flight.iter().position(|entry| entry.sequence == sequence)?;
        Some(in_flight.remove(index))
    }

    pub(super) fn time_out_next(&mut self, no: PartitionNo, now: Now) -> Option<Action<Q, R>> {
        // Not one that is to be sent: it would be encoded after its callers were told.
        let is_late = |entry: &&mut InFlight<Q>| {
            !entry.is_timed_out && !entry.to_send && entry.sent_at + REPLY_TIMEOUT <= now.steady
        };
        let entry = self.at(no).in_flight.iter_mut().find(is_late)?;
        entry.is_timed_out = true;
        let sequence = entry.sequence;
        // Blocking waiters may be served elsewhere; jobs that this batch reserves are released.
        let mut polls = std::mem::take(&mut entry.batch.polls);
        let mut waiters = Vec::new();
        for poll in &mut polls {
            waiters.extend(self.drop_poll(no, poll));
        }
        self.at(no).entry(sequence)?.batch.polls = polls;
        Some(Action::TimeOut { sequence, waiters })
    }

    /// While Redis does not answer: requests and immediate waiters that were queued for too long.
    pub(super) fn refuse_late(&mut self, no: PartitionNo, now: Now) -> Option<Action<Q, R>> {
        let partition = self.at(no);
        if !partition.in_flight.iter().any(|entry| entry.is_timed_out) {
            return None;
        }
        let is_late = |since: Duration| since + REPLY_TIMEOUT <= now.steady;
        let mut requests = Vec::new();
        while partition.queue.front().is_some_and(|queued| is_late(queued.since)) {
            requests.extend(partition.queue.pop_front().map(|queued| queued.request));
        }
        let late: Vec<WaiterNo> = partition.waiters.iter().copied().collect();
        let waiters: Vec<_> = late
            .into_iter()
            .filter(|waiter| self.waiters.get(waiter).is_some_and(|w| w.is_stuck(is_late)))
            .collect();
        waiters.iter().for_each(|&waiter| self.remove_waiter(waiter));
        let is_any = !requests.is_empty() || !waiters.is_empty();
        is_any.then_some(Action::Refuse { requests, waiters })
    }
}

impl<Q: Request, R> Partition<Q, R> {
    fn entry(&mut self, sequence: u8) -> Option<&mut InFlight<Q>> {
        self.in_flight.iter_mut().find(|entry| entry.sequence == sequence)
    }

    /// Whether Redis is slow to answer, or silent. A second batch would gain nothing, and its
    /// requests would time out later than those in the queue.
    pub(super) fn is_slow(&self, now: Now) -> bool {
        self.in_flight.iter().any(|entry| entry.is_slow(now))
    }

    /// When a batch in flight, or what waits behind one that timed out, is too late.
    /// `waiting_since`: the oldest immediate waiter.
    pub(super) fn reply_deadline(
        &self,
        waiting_since: Option<Duration>,
        now: Now,
    ) -> Option<Duration> {
        let queued_since = self.queue.front().map(|queued| queued.since);
        let oldest = queued_since.into_iter().chain(waiting_since).min();
        let refuse_at = oldest.map_or(now.steady + REFUSE_EVERY, |since| since + REPLY_TIMEOUT);
        let deadline = |entry: &InFlight<Q>| match entry.is_timed_out {
            true => refuse_at.max(now.steady + TICK),
            false if entry.waits && !entry.is_freed => entry.sent_at + SLOW_REPLY + TICK,
            false => entry.sent_at + REPLY_TIMEOUT,
        };
        self.in_flight.iter().map(deadline).min()
    }
}
