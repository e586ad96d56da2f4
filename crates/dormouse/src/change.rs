//! cancel, reschedule, run now, revive: changes to a job by its id or key, without a lease.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::op::{self, ChangeReply, Target};
use dormouse_core::topic::TopicName;

use crate::call::{Call, Items};
use crate::pending::Pending;
use crate::queue::Queue;
use crate::time::{span_ms, wall_ms};

/// The job that has this key.
pub(crate) fn by_key(topic: &str, key: &[u8]) -> Result<Target, Error> {
    let topic = TopicName::new(topic)?;
    Ok(Target::Key { topic, key: Bytes::copy_from_slice(key) })
}

impl Queue {
    /// Removes a job, whatever its state; answers the state it was in. If it is leased its token
    /// is revoked, unless [`unless_leased`](Call::unless_leased) is set.
    pub fn cancel(&self, id: JobId) -> Call<op::Cancel, ChangeReply> {
        self.cancel_target(Ok(Target::Id(id)))
    }

    /// Removes the job of this key and frees the key.
    ///
    /// ```
    /// # use dormouse::{Code, Queue};
    /// # use std::time::Duration;
    /// let queue = Queue::memory();
    /// queue.put("orders", "").key("order-42").delay(Duration::from_secs(1800)).wait()?;
    /// queue.cancel_key("orders", "order-42").wait()?;
    /// let again = queue.cancel_key("orders", "order-42").wait();
    /// assert_eq!(again.map_err(|error| error.code), Err(Code::NotFound));
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    pub fn cancel_key(&self, topic: &str, key: impl AsRef<[u8]>) -> Call<op::Cancel, ChangeReply> {
        self.cancel_target(by_key(topic, key.as_ref()))
    }

    fn cancel_target(&self, target: Result<Target, Error>) -> Call<op::Cancel, ChangeReply> {
        let options = target.map(|target| op::Cancel { target, unless_leased: false });
        Call::new(self, options, Queue::call)
    }

    /// Removes many; answers per item, in order.
    pub fn cancel_many(&self, items: Vec<op::Cancel>) -> Call<Vec<op::Cancel>, Items<ChangeReply>> {
        Call::new(self, Ok(items), Queue::call)
    }

    /// Moves the due time of a delayed or ready job: to a [`delay`](Call::delay) from now, or
    /// [`at`](Call::at) a time; with neither, to now. A leased or dead job answers `conflict`.
    pub fn reschedule(&self, id: JobId) -> Call<op::Reschedule, ChangeReply> {
        self.reschedule_target(Ok(Target::Id(id)))
    }

    /// Moves the due time of the job of this key.
    pub fn reschedule_key(
        &self,
        topic: &str,
        key: impl AsRef<[u8]>,
    ) -> Call<op::Reschedule, ChangeReply> {
        self.reschedule_target(by_key(topic, key.as_ref()))
    }

    /// Makes a delayed job ready now.
    pub fn run_now(&self, id: JobId) -> Call<op::Reschedule, ChangeReply> {
        self.reschedule(id)
    }

    /// Makes the delayed job of this key ready now.
    pub fn run_now_key(
        &self,
        topic: &str,
        key: impl AsRef<[u8]>,
    ) -> Call<op::Reschedule, ChangeReply> {
        self.reschedule_key(topic, key)
    }

    fn reschedule_target(
        &self,
        target: Result<Target, Error>,
    ) -> Call<op::Reschedule, ChangeReply> {
        let options = target.map(|target| op::Reschedule { target, delay_ms: None, at_ms: None });
        Call::new(self, options, Queue::call)
    }

    /// Moves many; answers per item, in order.
    pub fn reschedule_many(
        &self,
        items: Vec<op::Reschedule>,
    ) -> Call<Vec<op::Reschedule>, Items<ChangeReply>> {
        Call::new(self, Ok(items), Queue::call)
    }

    /// Makes a dead job ready now, with a fresh attempt budget.
    pub fn revive(&self, id: JobId) -> Call<Target, ChangeReply> {
        Call::new(self, Ok(Target::Id(id)), send_revive)
    }

    /// Makes the dead job of this key ready now.
    pub fn revive_key(&self, topic: &str, key: impl AsRef<[u8]>) -> Call<Target, ChangeReply> {
        Call::new(self, by_key(topic, key.as_ref()), send_revive)
    }

    /// Revives many; answers per item, in order.
    pub fn revive_many(&self, items: Vec<Target>) -> Call<Vec<Target>, Items<ChangeReply>> {
        Call::new(self, Ok(items), |queue, items| queue.call(op::Revive(items)))
    }
}

fn send_revive(queue: &Queue, target: Target) -> Pending<ChangeReply> {
    queue.call_one(op::Revive(vec![target]))
}

impl Call<op::Cancel, ChangeReply> {
    /// Fails with `conflict` if the job is leased, instead of revoking the lease.
    pub fn unless_leased(self) -> Self {
        self.set(|cancel| cancel.unless_leased = true)
    }
}

impl Call<op::Reschedule, ChangeReply> {
    /// Due after this delay from now.
    pub fn delay(self, delay: Duration) -> Self {
        self.set(|reschedule| reschedule.delay_ms = Some(span_ms(delay)))
    }

    /// Due at this time of the calendar.
    pub fn at(self, at: SystemTime) -> Self {
        self.set(|reschedule| reschedule.at_ms = Some(wall_ms(at)))
    }

    /// Due at this time of the calendar, in ms since 1970 UTC.
    pub fn at_ms(self, at_ms: u64) -> Self {
        self.set(|reschedule| reschedule.at_ms = Some(i64::try_from(at_ms).unwrap_or(i64::MAX)))
    }
}
