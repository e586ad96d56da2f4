//! A leased job.

use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::{BodyKind, JobId, Token};
use dormouse_core::op::{self, ChainReply, EndReply, ExtendReply};

use crate::call::Call;
use crate::put::Put;
use crate::queue::Queue;
use crate::time::instant;

/// A job returned by reserve: yours until its lease expires.
///
/// End the lease with [`ack`](LeasedJob::ack) (done), [`nack`](LeasedJob::nack) (failed, try
/// again), [`release`](LeasedJob::release) (not tried) or [`kill`](LeasedJob::kill) (never try
/// again). A job that is dropped instead becomes ready when the lease expires, with one attempt
/// spent.
///
/// The token of an expired lease stays valid until another consumer takes the job. After that
/// every operation on it fails with `lease_lost` and changes nothing.
#[derive(Clone)]
pub struct LeasedJob {
    job: op::LeasedJob,
    queue: Queue,
}

impl LeasedJob {
    pub(crate) fn new(queue: &Queue, job: op::LeasedJob) -> LeasedJob {
        LeasedJob { job, queue: queue.clone() }
    }

    /// The topic it was taken from.
    pub fn topic(&self) -> &str {
        self.job.topic.as_str()
    }

    /// Unique in the installation.
    pub fn id(&self) -> JobId {
        self.job.id
    }

    /// The key given by the producer.
    pub fn key(&self) -> Option<&[u8]> {
        self.job.key.as_deref()
    }

    /// What the topic's limits of groups are counted by.
    pub fn group(&self) -> Option<&[u8]> {
        self.job.group.as_deref()
    }

    /// Proof of this lease; it can be sent elsewhere and used with [`Queue::ack`] and the others.
    /// Its fence grows with every lease of the job, so a resource can refuse an older one.
    pub fn token(&self) -> Token {
        self.job.token
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.job.attempt
    }

    /// The schedule that put it, if one did.
    pub fn schedule(&self) -> Option<&str> {
        self.job.tick.as_ref().map(|tick| tick.schedule.as_str())
    }

    /// The tick that it stands for, if a schedule put it.
    pub fn tick(&self) -> Option<SystemTime> {
        self.job.tick.as_ref().map(|tick| instant(tick.tick_ms))
    }

    /// Ticks just before it that got no job.
    pub fn ticks_missed(&self) -> u64 {
        self.job.tick.as_ref().map_or(0, |tick| tick.missed)
    }

    /// When it was due.
    pub fn due_at(&self) -> SystemTime {
        instant(self.job.due_at)
    }

    /// When it was put.
    pub fn put_at(&self) -> SystemTime {
        instant(self.job.put_at)
    }

    /// When the lease expires, as of the reserve; an extend returns the new instant.
    pub fn expires_at(&self) -> SystemTime {
        instant(self.job.expires_at)
    }

    /// The lease's length.
    pub fn ttr(&self) -> Duration {
        Duration::from_millis(self.job.ttr_ms)
    }

    /// How long after its due time it was leased.
    pub fn late(&self) -> Duration {
        Duration::from_millis(self.job.late_ms)
    }

    /// Jobs with a lower priority are taken first.
    pub fn priority(&self) -> u32 {
        self.job.priority
    }

    /// The headers in the order they were given.
    pub fn headers(&self) -> &[(String, String)] {
        self.job.headers.as_ref().map_or(&[], |headers| headers.as_slice())
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers().iter();
        headers.find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The content of the job.
    pub fn body(&self) -> &Bytes {
        &self.job.body
    }

    /// Whether the body was put as text, JSON or bytes.
    pub fn body_kind(&self) -> BodyKind {
        self.job.body_kind
    }

    /// The body as text; `invalid` if it is not UTF-8.
    pub fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(&self.job.body).map_err(|error| {
            Error::invalid(format!("body of job {} is no text: {error}", self.id()))
        })
    }

    /// The body read as JSON; `invalid` with the reason if it is not what `T` expects.
    ///
    /// ```
    /// # use dormouse::Queue;
    /// let queue = Queue::memory();
    /// queue.put_json("sums", &(1, 2)).wait()?;
    /// let job = queue.reserve_one("sums").wait()?.expect("it is due");
    /// let (a, b): (u32, u32) = job.json()?;
    /// assert_eq!(a + b, 3);
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    #[cfg(feature = "json")]
    pub fn json<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, Error> {
        serde_json::from_slice(&self.job.body).map_err(|error| {
            Error::invalid(format!("body of job {} is not the JSON expected: {error}", self.id()))
        })
    }

    /// The reply of the backend, with all fields.
    pub fn as_leased(&self) -> &op::LeasedJob {
        &self.job
    }

    /// The job is done and removed.
    pub fn ack(&self) -> Call<Token, EndReply> {
        self.queue.ack(self.token())
    }

    /// The job is done, and those that come after it are put in the same step, as by
    /// [`Queue::ack_and_put`].
    pub fn ack_and_put(&self, puts: impl IntoIterator<Item = Put>) -> Call<op::Chain, ChainReply> {
        self.queue.ack_and_put(self.token(), puts)
    }

    /// The attempt failed: the job is retried after its backoff, or is dead if that was its last
    /// attempt.
    pub fn nack(&self) -> Call<op::Nack, EndReply> {
        self.queue.nack(self.token())
    }

    /// Gives the job back: it is ready again with no attempt spent.
    pub fn release(&self) -> Call<op::Release, EndReply> {
        self.queue.release(self.token())
    }

    /// Renews the lease for its own length from now.
    pub fn extend(&self) -> Call<op::Extend, ExtendReply> {
        self.queue.extend(self.token())
    }

    /// Whether it is at a server that may go and come back.
    #[cfg(feature = "worker")]
    pub(crate) fn is_remote(&self) -> bool {
        self.queue.is_remote()
    }

    /// Gives it back without waiting for the answer.
    #[cfg(feature = "worker")]
    pub(crate) fn forget(&self) {
        self.queue.forget(op::Release::now(self.token()).into());
    }

    /// Makes the job dead, until it is revived.
    pub fn kill(&self) -> Call<op::Kill, EndReply> {
        self.queue.kill(self.token())
    }
}

impl fmt::Debug for LeasedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LeasedJob").field(&self.job).finish()
    }
}
