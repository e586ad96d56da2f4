//! Executes a script batch: sends it until it is answered, and bounds how long its requests wait.
//!
//! After `REPLY_TIMEOUT` the requests are answered: `unconfirmed` for a change that was sent,
//! `unavailable` for the rest. From then on no copy of the batch can be executed, because scripts
//! refuse one that is older than `BATCH_AGE_MS_MAX`. The same bytes are still sent until they are
//! answered: to learn when Redis is back, and to release what the batch may have reserved in time.
//! They are never encoded again, since that would make them young. If the batch was never sent, an
//! empty one takes its place and number.

use std::pin::{Pin, pin};
use std::time::Duration;

use dormouse_core::error::{Code, Error};
use tokio::time::timeout;

use super::batch::{EncodedBatch, ScriptBatch};
use super::decode::{BatchStatus, CompletedBatch};
use super::{Partition, Queued};
use crate::clock;
use crate::cluster::{CallError, CallReply, SentFlag};
use crate::wire::config::Config;

/// How long a request waits for a Redis that does not answer.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long blocking waiters cause no poll after Redis refused a script.
const POLL_BACKOFF_MIN: Duration = Duration::from_millis(100);
const POLL_BACKOFF_MAX: Duration = Duration::from_secs(2);

impl Partition {
    /// Sends a batch until it is answered. `None` = it failed, and its requests have been answered.
    pub(super) async fn execute(
        &self,
        mut batch: ScriptBatch,
        sequence: u8,
    ) -> Option<CompletedBatch> {
        let number = self.last_number.get() + 1;
        self.last_number.set(number);
        let (mut was_resent, mut free) = (false, None);
        loop {
            let mut encoded = match batch.encode(self, sequence, number, free.as_deref()) {
                Ok(encoded) => encoded,
                Err(error) => {
                    batch.refuse_new_priorities(self, &error);
                    if batch.is_empty() {
                        return None;
                    }
                    continue;
                }
            };
            let in_flight = self.shared.intake.batch_sent(batch.items());
            let reply = self.send(&mut batch, &mut encoded, sequence, number).await;
            drop(in_flight);
            was_resent |= reply.as_ref().is_ok_and(|reply| reply.was_resent);
            let status = reply.and_then(|reply| self.decode(reply, encoded.config));
            match status {
                Ok(BatchStatus::Done(reply)) => {
                    self.poll_backoff.set(Duration::ZERO);
                    self.poll_not_before.set(None);
                    return Some(CompletedBatch {
                        batch,
                        reply,
                        was_resent,
                        was_concurrent: false,
                    });
                }
                // Nothing was executed, and its requests have been answered.
                Ok(_) if batch.is_timed_out => return None,
                Ok(BatchStatus::Retry) => {}
                Ok(BatchStatus::PrioritiesBusy(priorities)) => free = Some(priorities),
                Ok(BatchStatus::DataLost(config)) => self.restore(config).await,
                Err(error) => {
                    self.fail_batch(batch, &error);
                    return None;
                }
            }
            // The next attempt has the same number, so Redis may have executed this one.
            was_resent = true;
        }
    }

    /// Redis has lost its data. Until the topic is registered again no batch gets further than
    /// this: each is refused because it names another configuration.
    async fn restore(&self, config: Config) {
        tracing::error!("redis: all data of {} is gone", self.tag);
        let lost = self.config.borrow().version;
        self.shared.restore().await;
        if self.config.borrow().version == lost {
            *self.config.borrow_mut() = config;
        }
    }

    /// Sends the call and waits for its reply, however long it takes.
    async fn send(
        &self,
        batch: &mut ScriptBatch,
        encoded: &mut EncodedBatch,
        sequence: u8,
        number: u64,
    ) -> Result<CallReply, Error> {
        let (client, sent_flag) = (&self.shared.client, SentFlag::default());
        {
            let mut call = pin!(client.call_tracked(&encoded.call, &sent_flag));
            if let Ok(reply) = timeout(REPLY_TIMEOUT, &mut call).await {
                return reply.map_err(Error::from);
            }
            tracing::warn!("redis: no reply for {REPLY_TIMEOUT:?} about {}", self.tag);
            self.time_out(batch, sent_flag.is_sent());
            if sent_flag.is_sent() {
                return self.await_late_reply(call).await;
            }
        }
        // The requests were answered as not executed, so an empty batch goes on in their place, to
        // find out when Redis is back.
        *batch = ScriptBatch { is_timed_out: true, ..ScriptBatch::default() };
        *encoded = batch.encode(self, sequence, number, None)?;
        self.await_late_reply(pin!(client.call(&encoded.call))).await
    }

    /// Waits for a batch whose requests have timed out, and times out those queued meanwhile.
    async fn await_late_reply(
        &self,
        mut call: Pin<&mut impl Future<Output = Result<CallReply, CallError>>>,
    ) -> Result<CallReply, Error> {
        loop {
            match timeout(Duration::from_secs(1), call.as_mut()).await {
                Ok(reply) => {
                    tracing::info!("redis: answers again about {}", self.tag);
                    return reply.map_err(Error::from);
                }
                Err(_) => self.expire_queued(),
            }
        }
    }

    /// Answers requests and immediate waiters that were queued for too long.
    fn expire_queued(&self) {
        let late = |queued: &Queued| queued.since.elapsed() >= REPLY_TIMEOUT;
        let mut queue = self.queue.borrow_mut();
        while queue.front().is_some_and(late) {
            if let Some(mut queued) = queue.pop_front() {
                queued.request.fail(timed_out());
            }
        }
        drop(queue);
        for waiter in self.waiters.borrow().values() {
            if !waiter.is_blocking && waiter.since.elapsed() >= REPLY_TIMEOUT && !waiter.is_polled()
            {
                waiter.fail(&timed_out());
            }
        }
    }

    /// Answers the requests of a batch that Redis does not answer.
    fn time_out(&self, batch: &mut ScriptBatch, is_sent: bool) {
        batch.is_timed_out = true;
        for request in &mut batch.requests {
            let is_open = is_sent && request.is_change();
            request.fail(if is_open { self.unconfirmed() } else { timed_out() });
        }
        // Blocking waiters may be served elsewhere; jobs that this batch reserves are released.
        for shared in &mut batch.polls {
            for waiter in shared.waiters.drain(..) {
                waiter.fail(&timed_out());
            }
        }
        self.expire_queued();
    }

    /// Answers the requests of a failed batch. Polls back off, or blocking waiters would poll a
    /// Redis that refuses scripts thousands of times per second.
    pub(super) fn fail_batch(&self, mut batch: ScriptBatch, error: &Error) {
        let backoff = (self.poll_backoff.get() * 2).clamp(POLL_BACKOFF_MIN, POLL_BACKOFF_MAX);
        self.poll_backoff.set(backoff);
        self.poll_not_before.set(Some(clock::instant() + backoff));
        batch.fail(error);
        for waiter in batch.polls.iter().flat_map(|shared| &shared.waiters) {
            waiter.fail(error);
        }
    }
}

impl Partition {
    fn unconfirmed(&self) -> Error {
        self.shared.client.meters().note_unconfirmed();
        Error::new(
            Code::Unconfirmed,
            format!(
                "Redis has not answered for {} s: the change has happened or never will; check \
                 before you send it again",
                REPLY_TIMEOUT.as_secs()
            ),
        )
    }
}

pub(crate) fn timed_out() -> Error {
    Error::unavailable(format!(
        "Redis has not answered for {} s; the server keeps trying, so try again later",
        REPLY_TIMEOUT.as_secs()
    ))
}
