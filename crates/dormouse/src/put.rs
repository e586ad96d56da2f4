//! put: add a job.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use dormouse_core::backoff::Backoff;
use dormouse_core::command::Operation as _;
use dormouse_core::error::Error;
use dormouse_core::op::{self, OnConflict, PutReply};
use dormouse_core::topic::TopicName;

use crate::body::Body;
use crate::call::{Call, Items};
use crate::pending::{Pending, Read};
use crate::queue::Queue;
use crate::time::{span_ms, wall_ms};

impl Queue {
    /// Adds a job, due now unless a [`delay`](Put::delay) or a time is given.
    ///
    /// ```
    /// # use dormouse::Queue;
    /// # use std::time::Duration;
    /// # async fn f(queue: Queue) -> Result<(), dormouse::Error> {
    /// let put = queue
    ///     .put("orders", "cancel it unless paid")
    ///     .delay(Duration::from_secs(30 * 60))
    ///     .key("order-42")
    ///     .await?;
    /// println!("job {} is due at {} ms", put.id, put.due_at);
    /// # Ok(())
    /// # }
    /// ```
    pub fn put(&self, topic: &str, body: impl Into<Body>) -> Put<Queue> {
        Put::new(topic, body).to(self)
    }

    /// Adds a job whose body is this value as JSON;
    /// [`LeasedJob::json`](crate::LeasedJob::json) reads it back.
    #[cfg(feature = "json")]
    pub fn put_json<T: serde::Serialize + ?Sized>(&self, topic: &str, value: &T) -> Put<Queue> {
        Put::json(topic, value).to(self)
    }

    /// Adds many jobs as one batch, which is applied atomically. Answers per job, in order; a
    /// refused job does not affect the others.
    ///
    /// ```
    /// # use dormouse::{Put, Queue};
    /// # use std::time::Duration;
    /// let queue = Queue::memory();
    /// let mails = (0..3).map(|n| Put::new("mails", format!("{n}")).delay(Duration::from_secs(n)));
    /// let results = queue.put_many(mails).wait()?;
    /// assert!(results.iter().all(Result::is_ok));
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    pub fn put_many(&self, jobs: impl IntoIterator<Item = Put>) -> Call<Vec<Put>, Items<PutReply>> {
        Call::new(self, Ok(jobs.into_iter().collect()), send_many)
    }
}

fn send_many(queue: &Queue, jobs: Vec<Put>) -> Pending<Items<PutReply>> {
    let (mut good, mut refused) = (Vec::with_capacity(jobs.len()), Vec::new());
    for (index, put) in jobs.into_iter().enumerate() {
        match put.job {
            Ok(job) => good.push(job),
            Err(error) => refused.push((index, error)),
        }
    }
    if refused.is_empty() {
        return queue.call(good);
    }
    if good.is_empty() {
        return Pending::settled(Ok(refused.into_iter().map(|(_, error)| Err(error)).collect()));
    }
    let merge = move |reply| {
        let mut results = Vec::<op::Put>::from_reply(reply)?;
        // In rising order, so that each error keeps its index.
        for (index, error) in refused {
            results.insert(index.min(results.len()), Err(error));
        }
        Ok(results)
    };
    Pending::send(queue, good.into(), Read::With(Box::new(merge)))
}

/// A job to add, with its options.
///
/// From [`Queue::put`] it can be awaited, [waited for](Put::wait) or [sent](Put::send); from
/// [`Put::new`] it is an item for [`Queue::put_many`].
#[derive(Clone, Debug)]
#[must_use = "nothing is sent until it is awaited, waited for or sent"]
pub struct Put<Q = ()> {
    queue: Q,
    job: Result<op::Put, Error>,
}

impl Put {
    /// A job for [`Queue::put_many`].
    pub fn new(topic: &str, body: impl Into<Body>) -> Put {
        Put::build(topic, Ok(body.into()))
    }

    /// A job for [`Queue::put_many`] whose body is this value as JSON.
    #[cfg(feature = "json")]
    pub fn json<T: serde::Serialize + ?Sized>(topic: &str, value: &T) -> Put {
        Put::build(topic, Body::json(value))
    }

    fn build(topic: &str, body: Result<Body, Error>) -> Put {
        let job = TopicName::new(topic).and_then(|topic| {
            let (bytes, body_kind) = body?.into_parts();
            let job = op::Put { body_kind, ..op::Put::new(topic, bytes) };
            #[cfg(feature = "worker")]
            let job = op::Put { headers: crate::trace::current(), ..job };
            Ok(job)
        });
        Put { queue: (), job }
    }

    fn to(self, queue: &Queue) -> Put<Queue> {
        Put { queue: queue.clone(), job: self.job }
    }
}

impl<Q> Put<Q> {
    /// The job with its options, or what is wrong with it.
    pub(crate) fn into_job(self) -> Result<op::Put, Error> {
        self.job
    }

    /// Due after this delay; a step of the wall clock does not move it.
    pub fn delay(self, delay: Duration) -> Put<Q> {
        self.set(|job| job.delay_ms = Some(span_ms(delay)))
    }

    /// Due at this time of the calendar.
    pub fn at(self, at: SystemTime) -> Put<Q> {
        self.set(|job| job.at_ms = Some(wall_ms(at)))
    }

    /// Due at this time of the calendar, in ms since 1970 UTC.
    pub fn at_ms(self, at_ms: u64) -> Put<Q> {
        self.set(|job| job.at_ms = Some(i64::try_from(at_ms).unwrap_or(i64::MAX)))
    }

    /// Of the due jobs, the one with the lowest priority is taken first; 1024 unless given.
    pub fn priority(self, priority: u32) -> Put<Q> {
        self.set(|job| job.priority = Some(priority))
    }

    /// How long a lease lasts unless extended; 60 s unless given.
    pub fn ttr(self, ttr: Duration) -> Put<Q> {
        self.set(|job| job.ttr_ms = Some(span_ms(ttr)))
    }

    /// After this many attempts the job is dead; 16 unless given, 0 = no limit.
    pub fn attempts_max(self, attempts_max: u32) -> Put<Q> {
        self.set(|job| job.attempts_max = Some(attempts_max))
    }

    /// The delay after a failed attempt; 1 s doubling up to 10 minutes unless given.
    pub fn backoff(self, backoff: Backoff) -> Put<Q> {
        self.set(|job| job.backoff = Some(Arc::new(backoff)))
    }

    /// Your own id for the job, unique in the topic while the job lives. A put of a taken key
    /// answers with the job that has it, unless [`on_conflict`](Put::on_conflict) is set.
    pub fn key(self, key: impl AsRef<[u8]>) -> Put<Q> {
        self.set(|job| job.key = Some(Bytes::copy_from_slice(key.as_ref())))
    }

    /// How to resolve a taken key; [`OnConflict::Keep`] unless given.
    pub fn on_conflict(self, on_conflict: OnConflict) -> Put<Q> {
        self.set(|job| job.on_conflict = on_conflict)
    }

    /// How long the key stays taken after the ack, so that a late repeat is recognised.
    pub fn key_ttl(self, key_ttl: Duration) -> Put<Q> {
        self.set(|job| job.key_ttl_ms = Some(span_ms(key_ttl)))
    }

    /// The job dies if nobody takes it so long after it was due: at first, and after each retry.
    /// Zero = it never does, whatever the topic says.
    pub fn expires_after(self, expires_after: Duration) -> Put<Q> {
        self.set(|job| job.expires_after_ms = Some(span_ms(expires_after)))
    }

    /// What the topic's limits of groups are counted by
    /// ([`group_leased_max`](crate::Settings::group_leased_max) and
    /// [`group_rate`](crate::Settings::group_rate)); a job without one has no such limits.
    pub fn group(self, group: impl AsRef<[u8]>) -> Put<Q> {
        self.set(|job| job.group = Some(Bytes::copy_from_slice(group.as_ref())))
    }

    /// Adds a header; small strings that are kept with the job and handed out with it.
    ///
    /// A put that the handler of a worker makes has the `traceparent` and `tracestate` of its job
    /// already, so that a trace goes on; what is given here replaces them.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Put<Q> {
        self.set(|job| {
            let (name, headers) = (name.into(), job.headers.get_or_insert_default());
            let headers = Arc::make_mut(headers);
            #[cfg(feature = "worker")]
            if crate::trace::is_trace(&name) {
                headers.retain(|(own, _)| *own != name);
            }
            headers.push((name, value.into()));
        })
    }

    fn set(mut self, change: impl FnOnce(&mut op::Put)) -> Put<Q> {
        if let Ok(job) = &mut self.job {
            change(job);
        }
        self
    }
}

impl Put<Queue> {
    /// Sends it now; the answer can be read later.
    pub fn send(self) -> Pending<PutReply> {
        match self.job {
            Ok(job) => self.queue.call(job),
            Err(error) => Pending::refused(error),
        }
    }

    /// Sends it and blocks the thread until the job is stored.
    pub fn wait(self) -> Result<PutReply, Error> {
        self.send().wait()
    }
}

impl IntoFuture for Put<Queue> {
    type Output = Result<PutReply, Error>;
    type IntoFuture = Pending<PutReply>;

    fn into_future(self) -> Pending<PutReply> {
        self.send()
    }
}
