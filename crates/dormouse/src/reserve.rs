//! reserve: take jobs that are due, and wait for them.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use dormouse_core::command::Operation as _;
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::limits::WAIT_MS_MAX;
use dormouse_core::op;
use dormouse_core::topic::TopicName;

use crate::block::block_on;
use crate::call::Call;
use crate::leased_job::LeasedJob;
use crate::pending::{Pending, Read};
use crate::queue::Queue;
use crate::session::Session;
use crate::time::span_ms;

impl Queue {
    /// Takes due jobs: at most one unless [`max`](Reserve::max) is set. Answers at once, with no
    /// job if none is due, unless [`wait_for`](Reserve::wait_for) is set.
    ///
    /// ```
    /// # use dormouse::Queue;
    /// # use std::time::Duration;
    /// # async fn f(queue: Queue) -> Result<(), dormouse::Error> {
    /// for job in queue.reserve("orders").max(10).wait_for(Duration::from_secs(20)).await? {
    ///     println!("order {:?}", job.text()?);
    ///     job.ack().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn reserve(&self, topic: &str) -> Reserve {
        self.reserve_any([topic])
    }

    /// Takes jobs of several topics: by priority, then the longest overdue first.
    pub fn reserve_any<'a>(&self, topics: impl IntoIterator<Item = &'a str>) -> Reserve {
        Reserve::new(self, topics.into_iter().map(TopicName::new).collect())
    }

    /// Takes one job, or none.
    pub fn reserve_one(&self, topic: &str) -> Reserve<Option<LeasedJob>> {
        Reserve::new(self, TopicName::new(topic).map(|topic| vec![topic]))
    }

    /// Takes this job now, delayed or ready or dead, whatever its due time.
    pub fn reserve_id(&self, id: JobId) -> Call<op::ReserveId, LeasedJob> {
        let options = op::ReserveId { id, ttr_ms: None, session: None };
        Call::new(self, Ok(options), |queue, options| {
            let owner = queue.clone();
            let read = move |reply| Ok(LeasedJob::new(&owner, op::ReserveId::from_reply(reply)?));
            Pending::claim(queue, options, Read::With(Box::new(read)))
        })
    }
}

impl Call<op::ReserveId, LeasedJob> {
    /// Lease time instead of the job's own.
    pub fn ttr(self, ttr: Duration) -> Self {
        self.set(|options| options.ttr_ms = Some(span_ms(ttr)))
    }

    /// The lease ends with this session.
    pub fn session(self, session: &Session) -> Self {
        self.set(|options| options.session = Some(session.id()))
    }
}

/// A reserve that is described and not sent yet: await it, or block with [`wait`](Reserve::wait),
/// or start it with [`send`](Reserve::send).
///
/// The future may be dropped at any time, as `select!` or a timeout does: a reserve that still
/// waits is withdrawn, and jobs that were already on their way are given back with no attempt
/// spent. No job is lost and none is held.
#[derive(Clone)]
#[must_use = "nothing is sent until it is awaited, waited for or sent"]
pub struct Reserve<T = Vec<LeasedJob>> {
    queue: Queue,
    options: Result<op::Reserve, Error>,
    wait_ms: u64,
    gives: PhantomData<fn() -> T>,
}

impl<T: FromJobs> Reserve<T> {
    fn new(queue: &Queue, topics: Result<Vec<TopicName>, Error>) -> Reserve<T> {
        let options = topics.map(|topics| op::Reserve {
            topics,
            max: 1,
            wait_ms: 0,
            ttr_ms: None,
            session: None,
        });
        Reserve { queue: queue.clone(), options, wait_ms: 0, gives: PhantomData }
    }

    /// From this topic too.
    pub fn and(mut self, topic: &str) -> Reserve<T> {
        match TopicName::new(topic) {
            Ok(topic) => self.set(|options| options.topics.push(topic)),
            Err(error) => {
                self.options = self.options.and(Err(error));
                self
            }
        }
    }

    /// How long to wait for the first job; it answers as soon as it has one. `Duration::MAX`
    /// waits without end. By the queue's clock: a virtual clock must be moved for it to pass.
    pub fn wait_for(mut self, wait: Duration) -> Reserve<T> {
        // A Duration is never negative.
        self.wait_ms = span_ms(wait).unsigned_abs();
        self
    }

    /// Lease time instead of each job's own.
    pub fn ttr(self, ttr: Duration) -> Reserve<T> {
        self.set(|options| options.ttr_ms = Some(span_ms(ttr)))
    }

    /// The leases end with this session.
    pub fn session(self, session: &Session) -> Reserve<T> {
        self.set(|options| options.session = Some(session.id()))
    }

    /// Sends it now; jobs are taken when the future is awaited, and given back when it is
    /// dropped.
    pub fn send(self) -> ReserveFuture<T> {
        let mut reserving = self.into_future();
        reserving.begin();
        reserving
    }

    /// Sends it and blocks the thread until it is answered.
    pub fn wait(self) -> Result<T, Error> {
        block_on(self.into_future())
    }

    fn set(mut self, change: impl FnOnce(&mut op::Reserve)) -> Reserve<T> {
        if let Ok(options) = &mut self.options {
            change(options);
        }
        self
    }
}

impl Reserve {
    /// The most jobs to take at once; 1 unless given.
    pub fn max(self, max: usize) -> Reserve {
        self.set(|options| options.max = max)
    }
}

impl<T: FromJobs> IntoFuture for Reserve<T> {
    type Output = Result<T, Error>;
    type IntoFuture = ReserveFuture<T>;

    fn into_future(self) -> ReserveFuture<T> {
        let state = match self.options {
            Ok(options) => State::Next(options),
            Err(error) => State::Refused(error),
        };
        ReserveFuture { queue: self.queue, state, wait_ms: self.wait_ms, gives: PhantomData }
    }
}

impl<T> fmt::Debug for Reserve<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = (&self.options, self.wait_ms);
        f.debug_tuple("Reserve").field(&options.0).field(&options.1).finish()
    }
}

/// A reserve under way; sent when it is first polled at the latest, withdrawn when it is dropped.
///
/// A wait beyond the backend's longest is cut into several: the next begins when one ends with
/// nothing, so no clock is needed to know how much is left.
#[must_use = "a reserve is withdrawn when it is dropped"]
pub struct ReserveFuture<T = Vec<LeasedJob>> {
    queue: Queue,
    state: State,
    /// How much of the wait has not been sent yet.
    wait_ms: u64,
    gives: PhantomData<fn() -> T>,
}

enum State {
    Refused(Error),
    /// To be sent.
    Next(op::Reserve),
    /// Sent; holds the next request if this one returns no job and there is time left.
    Sent(Pending<Vec<op::LeasedJob>>, Option<op::Reserve>),
    Answered,
}

impl<T: FromJobs> ReserveFuture<T> {
    fn begin(&mut self) {
        match std::mem::replace(&mut self.state, State::Answered) {
            State::Next(options) => self.submit(options),
            other => self.state = other,
        }
    }

    fn submit(&mut self, mut options: op::Reserve) {
        let wait_ms = self.wait_ms.min(WAIT_MS_MAX);
        self.wait_ms -= wait_ms;
        let next = (self.wait_ms > 0).then(|| options.clone());
        options.wait_ms = i64::try_from(wait_ms).unwrap_or(i64::MAX);
        let read = Read::Plain(op::Reserve::from_reply);
        self.state = State::Sent(Pending::claim(&self.queue, options, read), next);
    }
}

impl<T: FromJobs> Future for ReserveFuture<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, Error>> {
        let this = self.get_mut();
        loop {
            if let State::Sent(pending, next) = &mut this.state {
                let jobs = ready!(Pin::new(pending).poll(cx));
                match (jobs, next.take()) {
                    (Ok(jobs), Some(options)) if jobs.is_empty() => this.submit(options),
                    (jobs, _) => {
                        this.state = State::Answered;
                        return Poll::Ready(jobs.map(|jobs| T::from_jobs(jobs, &this.queue)));
                    }
                }
                continue;
            }
            match std::mem::replace(&mut this.state, State::Answered) {
                State::Next(options) => this.submit(options),
                State::Refused(error) => return Poll::Ready(Err(error)),
                _ => panic!("a ReserveFuture was polled after it had given its answer"),
            }
        }
    }
}

impl<T> fmt::Debug for ReserveFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReserveFuture").field("wait_ms", &self.wait_ms).finish_non_exhaustive()
    }
}

/// The output of a reserve: all its jobs, or at most one.
pub trait FromJobs: Sized + sealed::Sealed {
    #[doc(hidden)]
    fn from_jobs(jobs: Vec<op::LeasedJob>, queue: &Queue) -> Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for Vec<super::LeasedJob> {}
    impl Sealed for Option<super::LeasedJob> {}
}

impl FromJobs for Vec<LeasedJob> {
    fn from_jobs(jobs: Vec<op::LeasedJob>, queue: &Queue) -> Vec<LeasedJob> {
        jobs.into_iter().map(|job| LeasedJob::new(queue, job)).collect()
    }
}

impl FromJobs for Option<LeasedJob> {
    fn from_jobs(mut jobs: Vec<op::LeasedJob>, queue: &Queue) -> Option<LeasedJob> {
        jobs.pop().map(|job| LeasedJob::new(queue, job))
    }
}
