//! One partition of a topic, as this server sees it. Its task (`Partition::run`) performs what the
//! scheduler decides: it encodes script batches (`batch`), sends them, reads the replies (`decode`)
//! and delivers them (`deliver`).

mod batch;
mod calls;
mod decode;
mod deliver;
mod registration;
mod reply_to;
mod request;
mod shared;
pub(crate) mod waiter;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::Token;
use dormouse_core::topic::TopicName;
use tokio::sync::Notify;
use tokio::time::sleep_until;

pub(crate) use registration::registered_anew;
pub(crate) use reply_to::ReplyTo;
pub(crate) use request::{Effect, PartitionRequest, PerItem, RawReply, SettingsChange};
pub(crate) use shared::{Registered, Shared, Upstream};

use crate::clock;
use crate::cluster::{ClusterClient, slot_of};
use crate::codec::nack::EndRequest;
use crate::keys;
use crate::scheduler::{
    Action, PartitionNo, REPLY_TIMEOUT, Rank, SubmissionNo, TicksReport, WaiterNo,
};
use crate::wire::config::Config;
use crate::wire::flow;
use calls::{CallEnd, Calls};
use decode::BatchStatus;

pub(crate) struct Partition {
    pub(crate) shared: Rc<Shared>,
    pub(crate) no: PartitionNo,
    /// `None` = it holds locks.
    pub(crate) topic: Option<TopicName>,
    pub(crate) tag: String,
    pub(crate) slot: u16,
    /// The shard number, three bytes, big-endian.
    pub(crate) shard: Bytes,
    shard_no: u32,
    pub(crate) keys: [Bytes; 15],
    pub(crate) channel: Bytes,
    /// Its index among the partitions of the topic, and how many those are.
    position: (u64, u64),
    pub(crate) config: RefCell<Config>,
    /// The last job number that this server has seen.
    last_number: Cell<u64>,
    /// When the register last showed that the shard is this one's.
    registered_at: Cell<Instant>,
    /// The topic has other shards by now: nothing is sent any more.
    is_void: Cell<bool>,
    /// Redis has confirmed the subscription to the channel.
    is_confirmed: Cell<bool>,
    wake: Rc<Notify>,
    /// Held by the task that sends dead letters.
    pub(crate) letters: tokio::sync::Mutex<()>,
    /// Signals a change to requests that wait without a parked waiter: those for locks.
    pub(crate) changed: Notify,
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
        let wake = Rc::new(Notify::new());
        let partition = Rc::new(Partition {
            no: shared.add_partition(position.1, &wake),
            topic,
            slot: slot_of(tag.as_bytes()),
            shard: Bytes::copy_from_slice(&[high, mid, low]),
            shard_no: shard,
            keys: keys::fixed(&tag),
            channel: keys::channel(&tag),
            tag,
            position,
            config: RefCell::default(),
            last_number: Cell::new(0),
            registered_at: Cell::new(clock::instant()),
            is_void: Cell::new(false),
            is_confirmed: Cell::new(false),
            wake,
            letters: tokio::sync::Mutex::default(),
            changed: Notify::new(),
            shared: Rc::clone(shared),
        });
        let task = Rc::clone(&partition);
        tokio::task::spawn_local(async move { task.run().await });
        partition
    }

    /// This partition's share of a limit of the topic.
    pub(crate) fn share(&self, max: Option<u64>) -> Option<u64> {
        max.map(|max| flow::share(self.position, max))
    }

    /// Whether the end of a lease may let another job be taken.
    pub(crate) fn has_slots(&self) -> bool {
        let settings = &self.config.borrow().settings;
        settings.leased_limit().is_some() || settings.group_leased_max.is_some()
    }

    pub(crate) fn submit(&self, submission: Option<SubmissionNo>, request: PartitionRequest) {
        // Who waits for the slot of a lease is polled for with its end.
        let frees_slot = matches!(request, PartitionRequest::Ack { .. }) && self.has_slots();
        self.shared.schedule(|scheduler, now| {
            scheduler.submit(self.no, submission, request, now);
            if frees_slot {
                scheduler.poll_now(self.no);
            }
        });
        self.wake.notify_one();
    }

    /// Releases leases that no caller will receive; their attempts are not spent.
    pub(crate) fn give_back(&self, tokens: &[Token]) {
        if tokens.is_empty() {
            return;
        }
        let endings = tokens.iter().map(|&token| EndRequest::of(token)).collect();
        self.submit(None, PartitionRequest::release(endings, ReplyTo::Discard));
    }

    /// How many reserves wait for a job of this partition.
    pub(crate) fn blocking_waiters(&self) -> usize {
        self.shared.schedule(|scheduler, _| scheduler.blocking_waiters(self.no))
    }

    /// A lower bound of the rank of the job that a reserve would get next. `None` = no job is
    /// visible.
    pub(crate) fn first_visible(&self, now_ms: u64) -> Option<Rank> {
        self.shared.heads(self.no).first_visible(now_ms)
    }

    /// Polls for all waiters: a job may have become visible.
    pub(crate) fn poll_now(&self) {
        self.shared.schedule(|scheduler, _| scheduler.poll_now(self.no));
        self.wake.notify_one();
    }

    /// Handles a wakeup: a job becomes visible at this instant by Redis' clock.
    pub(crate) fn wake_at(&self, at_ms: u64) {
        self.shared.schedule(|scheduler, _| scheduler.wakeup(self.no, at_ms));
        self.wake.notify_one();
        self.changed.notify_waiters();
    }

    /// A schedule is due at this instant by Redis' clock.
    pub(crate) fn expect_tick(&self, at_ms: u64) {
        self.shared.schedule(|scheduler, _| scheduler.expect_tick(self.no, at_ms));
    }

    /// The partition may have schedules.
    pub(crate) fn watch_ticks(&self) {
        self.shared.schedule(|scheduler, _| scheduler.watch_ticks(self.no));
    }

    /// A portion of ticks was given, or could not be.
    pub(crate) fn end_ticks(&self, report: Option<TicksReport>) {
        self.shared.schedule(|scheduler, now| match report {
            Some(report) => scheduler.ticks_given(self.no, report, now),
            None => scheduler.ticks_failed(self.no, now),
        });
    }

    /// Asks for the messages of the channel, without waiting for the confirmation.
    pub(crate) fn subscribe(&self) {
        if self.shared.schedule(|scheduler, now| scheduler.subscribe(self.no, now)) {
            self.shared.client.subscribe(self.slot, self.channel.clone());
            self.is_confirmed.set(false);
            self.wake.notify_one();
        }
    }

    /// Returns when the channel is subscribed. A message published before that is lost, so the
    /// partition polls once more.
    pub(crate) async fn subscribed(&self) {
        self.subscribe();
        if !self.is_confirmed.get() {
            self.shared.client.subscribed(&self.channel).await;
            self.is_confirmed.set(true);
            self.poll_now();
        }
    }

    async fn run(&self) {
        let mut calls = Calls::default();
        loop {
            self.shared.drain();
            self.perform(&mut calls).await;
            if calls.is_empty() {
                self.idle().await;
                // Lets other ready tasks add their requests to the batch.
                tokio::task::yield_now().await;
                continue;
            }
            let wake_at = self.shared.schedule(|scheduler, now| scheduler.wake_at(self.no, now));
            let deadline = wake_at.steady.map(|steady| self.shared.instant(steady));
            tokio::select! {
                biased;
                (sequence, end) = calls.next_end() => self.ended(&mut calls, sequence, end),
                () = self.wake.notified() => {}
                () = sleep_until(deadline.unwrap_or_else(clock::instant).into()),
                    if deadline.is_some() => {}
            }
        }
    }

    /// Returns when there may be something to do.
    async fn idle(&self) {
        let wake_at = self.shared.schedule(|scheduler, now| scheduler.wake_at(self.no, now));
        let at = wake_at.steady.map(|steady| self.shared.instant(steady));
        let at_ms = wake_at.redis_ms;
        tokio::select! {
            () = self.wake.notified() => {}
            () = sleep_until(at.unwrap_or_else(clock::instant).into()), if at.is_some() => {}
            () = self.shared.clock.sleep_until(at_ms.unwrap_or(0)), if at_ms.is_some() => {}
        }
    }

    /// Performs all actions of the scheduler.
    async fn perform<'a>(&'a self, calls: &mut Calls<'a>) {
        let mut has_sent = false;
        loop {
            let action = self.shared.schedule(|scheduler, now| scheduler.next_action(self.no, now));
            match action {
                None => return,
                Some(Action::Send { sequence }) => {
                    self.send(calls, sequence);
                    has_sent = true;
                }
                Some(Action::Deliver { batch, reply, is_reordered }) => {
                    // The batch just filled is written before the replies are delivered: Redis
                    // executes it while callers take their answers.
                    if std::mem::take(&mut has_sent) {
                        calls.start().await;
                    }
                    self.deliver(batch, reply);
                    self.shared.schedule(|scheduler, _| scheduler.delivered(self.no, is_reordered));
                }
                Some(Action::TimeOut { sequence, waiters }) => {
                    self.time_out(calls, sequence);
                    self.fail_waiters(waiters, &self.timed_out());
                }
                Some(Action::Refuse { requests, waiters }) => {
                    requests.into_iter().for_each(|mut request| request.fail(self.timed_out()));
                    self.fail_waiters(waiters, &self.timed_out());
                }
                // The channel is that of the new partition, too.
                Some(Action::Unsubscribe) if self.is_void.get() => {}
                Some(Action::Unsubscribe) => self.shared.client.unsubscribe(&self.channel),
                Some(Action::GiveTicks) => self.shared.give_ticks(self.shard_no),
            }
        }
    }

    /// Encodes the batch of a sequence, and calls its script until there is a reply.
    fn send<'a>(&'a self, calls: &mut Calls<'a>, sequence: u8) {
        let encoded = self.shared.schedule(|scheduler, _| {
            let (number, batch) = scheduler.batch(self.no, sequence)?;
            let call = calls.batch(sequence, number);
            let mut encoded = self.encode(batch, sequence, number, call.free.as_deref());
            if let Err(error) = &encoded {
                self.refuse_new_priorities(batch, error);
                encoded = self.encode(batch, sequence, number, call.free.as_deref());
            }
            let is_needed = !batch.is_empty() || call.is_timed_out;
            let encoded = encoded.ok().filter(|_| is_needed);
            if encoded.is_none() {
                scheduler.cancel(self.no, sequence);
            }
            Some((encoded?, call))
        });
        let Some((encoded, call)) = encoded else { return };
        let sent_flag = call.sent_flag.clone();
        let in_flight = self.shared.intake.batch_sent();
        call.call(async move {
            if let Err(error) = self.confirm_registration(&encoded).await {
                return CallEnd { status: Err(error), was_resent: false };
            }
            let reply = self.shared.client.call_tracked(&encoded.call, &sent_flag).await;
            drop(in_flight);
            let was_resent = reply.as_ref().is_ok_and(|reply| reply.was_resent);
            let decoded = reply.map_err(Error::from);
            let status = match decoded.and_then(|reply| self.decode(reply, encoded.config)) {
                Ok(status) => self.restored(status).await,
                failed => failed,
            };
            CallEnd { status, was_resent }
        });
    }

    /// A call has ended: with a reply, or without effect, or with an error.
    fn ended(&self, calls: &mut Calls<'_>, sequence: u8, end: CallEnd) {
        let no = self.no;
        let Some(call) = calls.get(sequence) else { return };
        if std::mem::take(&mut call.is_timed_out) {
            tracing::info!("redis: answers again about {}", self.tag);
        }
        match end.status {
            Ok(BatchStatus::Done(reply)) => self.shared.schedule(|scheduler, _| {
                scheduler.completed(no, sequence, reply, end.was_resent);
            }),
            Ok(status) => {
                if let BatchStatus::PrioritiesBusy(free) = status {
                    call.free = Some(free);
                }
                self.shared.schedule(|scheduler, _| scheduler.again(no, sequence));
            }
            Err(error) => {
                let failed =
                    self.shared.schedule(|scheduler, now| scheduler.failed(no, sequence, now));
                let Some((batch, waiters)) = failed else { return };
                // What changes nothing is in no doubt.
                let refused = match error.code {
                    Code::Unconfirmed => Error::unavailable(error.text.clone()),
                    _ => error.clone(),
                };
                for mut request in batch.requests {
                    let is_open = request.is_change() && error.code == Code::Unconfirmed;
                    if is_open {
                        self.shared.client.meters().note_unconfirmed();
                    }
                    request.fail(if is_open { error.clone() } else { refused.clone() });
                }
                self.fail_waiters(waiters, &refused);
            }
        }
    }

    /// Answers the requests of a batch that Redis does not answer.
    fn time_out(&self, calls: &mut Calls<'_>, sequence: u8) {
        let trouble = self.shared.client.trouble(self.slot);
        tracing::warn!("redis: no reply for {REPLY_TIMEOUT:?} about {}: {trouble}", self.tag);
        let Some(call) = calls.get(sequence) else { return };
        call.is_timed_out = true;
        let is_sent = call.sent_flag.is_sent();
        self.shared.schedule(|scheduler, _| {
            let Some((_, batch)) = scheduler.batch(self.no, sequence) else { return };
            for request in &mut batch.requests {
                let is_open = is_sent && request.is_change();
                request.fail(if is_open { self.unconfirmed() } else { self.timed_out() });
            }
            if !is_sent {
                call.cancel();
                scheduler.clear(self.no, sequence);
            }
        });
    }

    fn fail_waiters(&self, waiters: Vec<WaiterNo>, error: &Error) {
        for waiter in waiters.into_iter().filter_map(|no| self.shared.waiter(no)) {
            waiter.finish_with(Err(error.clone()));
        }
    }

    fn unconfirmed(&self) -> Error {
        self.shared.client.meters().note_unconfirmed();
        Error::new(
            Code::Unconfirmed,
            format!(
                "{}, for {} s: the change has happened or never will; check before you send it \
                 again",
                self.shared.client.trouble(self.slot),
                REPLY_TIMEOUT.as_secs()
            ),
        )
    }

    pub(crate) fn timed_out(&self) -> Error {
        timed_out(&self.shared.client, self.slot)
    }

    /// Whether Redis has not answered about this partition for a while.
    pub(crate) fn is_away(&self) -> bool {
        self.shared.schedule(|scheduler, now| scheduler.is_away(self.no, now))
    }
}

pub(crate) fn timed_out(client: &ClusterClient, slot: u16) -> Error {
    Error::unavailable(format!(
        "{}, for {} s; the server keeps trying, so try again later",
        client.trouble(slot),
        REPLY_TIMEOUT.as_secs()
    ))
}
