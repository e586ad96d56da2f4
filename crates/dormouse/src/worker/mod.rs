//! A worker: takes jobs as they become due and runs a function for each.

mod fetch;
mod job;
mod lease_timer;
mod outcome;
mod pool;
mod supervise;
mod tally;

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use dormouse_core::error::Error;
use dormouse_core::topic::TopicName;
use tokio::sync::watch;

use crate::queue::Queue;
use crate::trace;
use fetch::{Fetch, Outage};
use lease_timer::LeaseTimer;
use pool::{Handler, OnEnd, Pool, Start};

pub use job::Job;
pub use outcome::{IntoOutcome, Outcome};
pub use tally::{End, Tally};

const CONCURRENCY: usize = 10;
const GRACE: Duration = Duration::from_secs(30);
const OUTAGE: Duration = Duration::from_secs(5 * 60);

/// Takes jobs as they become due and runs a handler for each.
///
/// - A handler that returns `Ok` (or nothing) acks its job; `Err` nacks it with the error's text,
///   and so does a panic. An [`Outcome`] expresses the rest: kill, release, nack with a delay.
/// - The lease is renewed at a third of its length for as long as the handler runs. If it is lost
///   all the same (the job was cancelled, or the process was suspended for too long) the handler
///   is notified through [`Job::lost`].
/// - When stopped, it takes no more jobs, waits for its handlers for the [grace](Worker::grace),
///   and gives unfinished jobs back with no attempt spent. If the future of [`run`](Worker::run)
///   is dropped instead, all its jobs are given back at once.
///
/// It needs a tokio runtime with its time driver, or [`run_blocking`](Worker::run_blocking).
///
/// With a virtual clock jobs become due and leases are renewed as the clock is advanced, while the
/// grace and the handlers' own sleeps use real time. Advance it in steps of less than a third of
/// the ttr and let the renewal happen in between: a step beyond the whole ttr looks to a worker
/// like a suspended process, and its leases expire. A queue made with [`Queue::from_backend`] is
/// assumed to follow real time.
///
/// ```
/// # use dormouse::{Job, Queue, Worker};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), dormouse::Error> {
/// let queue = Queue::memory();
/// queue.put("mails", "to: you").wait()?;
///
/// let worker = Worker::new(&queue);
/// let stop = worker.stopper();
/// let worker = worker.concurrency(4).handle("mails", move |job: Job| {
///     let stop = stop.clone();
///     async move {
///         println!("sending {:?}", job.text()?);
///         stop.stop();
///         Ok::<_, dormouse::Error>(())
///     }
/// });
/// assert_eq!(worker.run().await?.done, 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "a worker does nothing until it runs"]
pub struct Worker {
    queue: Queue,
    handlers: Vec<Handler>,
    concurrency: usize,
    limits: Vec<(String, usize)>,
    grace: Duration,
    timeout: Option<Duration>,
    outage: Outage,
    on_end: Option<OnEnd>,
    stop: watch::Sender<bool>,
}

impl Worker {
    /// A worker without handlers yet.
    pub fn new(queue: &Queue) -> Worker {
        Worker {
            queue: queue.clone(),
            handlers: Vec::new(),
            concurrency: CONCURRENCY,
            limits: Vec::new(),
            grace: GRACE,
            timeout: None,
            outage: Outage::new(OUTAGE),
            on_end: None,
            stop: watch::Sender::new(false),
        }
    }

    /// Runs an async function for each job of a topic.
    pub fn handle<F, R>(self, topic: &str, handler: F) -> Worker
    where
        F: Fn(Job) -> R + Send + Sync + 'static,
        R: Future<Output: IntoOutcome> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let start = move |job: Job| {
            let handler = handler.clone();
            let trace = trace::of(&job);
            // Called inside the task, so that a panic before the first await counts too.
            tokio::spawn(trace::carry(trace, async move { handler(job).await.into_outcome() }))
        };
        self.add_handler(topic, Arc::new(start))
    }

    /// Runs an async function for each job of a topic, with a clone of `state`: a connection pool,
    /// an `Arc` of settings.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use dormouse::{Job, Queue, Worker};
    /// struct Shop;
    ///
    /// impl Shop {
    ///     async fn cancel(&self, _order: &str) {}
    /// }
    ///
    /// async fn cancel_order(shop: Arc<Shop>, job: Job) -> Result<(), dormouse::Error> {
    ///     shop.cancel(job.text()?).await;
    ///     Ok(())
    /// }
    ///
    /// let queue = Queue::memory();
    /// let worker = Worker::new(&queue).handle_with(Arc::new(Shop), "orders", cancel_order);
    /// # drop(worker);
    /// ```
    pub fn handle_with<S, F, R>(self, state: S, topic: &str, handler: F) -> Worker
    where
        S: Clone + Send + Sync + 'static,
        F: Fn(S, Job) -> R + Send + Sync + 'static,
        R: Future<Output: IntoOutcome> + Send + 'static,
    {
        self.handle(topic, move |job| handler(state.clone(), job))
    }

    /// Runs an async function for each job of a topic, with the body read as JSON. A job whose body
    /// cannot be read so is killed: trying again would not help.
    ///
    /// ```
    /// # use dormouse::{Job, Queue, Worker};
    /// #[derive(serde::Deserialize)]
    /// struct Mail {
    ///     to: String,
    /// }
    ///
    /// async fn send(mail: Mail, job: Job) -> std::io::Result<()> {
    ///     println!("attempt {}: to {}", job.attempt(), mail.to);
    ///     Ok(())
    /// }
    ///
    /// let queue = Queue::memory();
    /// let worker = Worker::new(&queue).handle_json("mails", send);
    /// # drop(worker);
    /// ```
    #[cfg(feature = "json")]
    pub fn handle_json<T, F, R>(self, topic: &str, handler: F) -> Worker
    where
        T: serde::de::DeserializeOwned + Send + 'static,
        F: Fn(T, Job) -> R + Send + Sync + 'static,
        R: Future<Output: IntoOutcome> + Send + 'static,
    {
        let handler = Arc::new(handler);
        self.handle(topic, move |job: Job| {
            let handler = handler.clone();
            async move {
                match job.json::<T>() {
                    Ok(value) => handler(value, job).await.into_outcome(),
                    Err(error) => Outcome::kill(error),
                }
            }
        })
    }

    /// Runs a blocking function for each job of a topic, on tokio's pool of blocking threads. It
    /// cannot be stopped from outside: a long one should check [`Job::is_lost`] now and then.
    pub fn handle_blocking<F, R>(self, topic: &str, handler: F) -> Worker
    where
        F: Fn(Job) -> R + Send + Sync + 'static,
        R: IntoOutcome,
    {
        let handler = Arc::new(handler);
        let start = move |job: Job| {
            let handler = handler.clone();
            let trace = trace::of(&job);
            let run = move || trace::within(&trace, || handler(job).into_outcome());
            tokio::task::spawn_blocking(run)
        };
        self.add_handler(topic, Arc::new(start))
    }

    fn add_handler(mut self, topic: &str, start: Start) -> Worker {
        self.handlers.push(Handler { topic: topic.to_owned(), start, concurrency: usize::MAX });
        self
    }

    /// How many jobs may run at once, over all topics; 10 unless given.
    pub fn concurrency(mut self, concurrency: usize) -> Worker {
        self.concurrency = concurrency;
        self
    }

    /// How many jobs of this topic may run at once; no limit of its own unless given.
    pub fn topic_concurrency(mut self, topic: &str, concurrency: usize) -> Worker {
        self.limits.push((topic.to_owned(), concurrency));
        self
    }

    /// How long to wait for handlers when stopped; 30 s unless given.
    pub fn grace(mut self, grace: Duration) -> Worker {
        self.grace = grace;
        self
    }

    /// How long a handler may run, by real time; no limit unless given. One that takes longer is
    /// stopped and its job nacked. A blocking one cannot be stopped: it goes on beside the next
    /// attempt, and should check [`Job::is_lost`].
    pub fn job_timeout(mut self, timeout: Duration) -> Worker {
        self.timeout = Some(timeout);
        self
    }

    /// How long to go on without the server of a [connected](Queue::connect) queue; 5 minutes
    /// unless given. Then [`run`](Worker::run) returns the error. It is counted from the first
    /// error since the last answer. A reserve that waits tells one only at its end, so it may be
    /// a minute longer.
    pub fn outage_max(mut self, longest: Duration) -> Worker {
        self.outage.longest = longest;
        self
    }

    /// Called with each error that the worker survives because the server may come back, to write
    /// it to a log.
    pub fn on_error(mut self, hook: impl Fn(&Error) + Send + Sync + 'static) -> Worker {
        self.outage.on_error = Some(Arc::new(hook));
        self
    }

    /// Called when a job has ended and the backend has answered, with how; to count, to log, or
    /// to end a span. It must not block.
    pub fn on_end(mut self, hook: impl Fn(&Job, End) + Send + Sync + 'static) -> Worker {
        self.on_end = Some(Arc::new(hook));
        self
    }

    /// Stops the worker from elsewhere, a handler for example.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone())
    }

    /// Runs until it is [stopped](Worker::stopper) or the backend fails.
    pub async fn run(self) -> Result<Tally, Error> {
        self.run_until(std::future::pending()).await
    }

    /// Runs until `shutdown` is ready, it is [stopped](Worker::stopper), or the backend fails.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<Tally, Error> {
        let handlers = self.checked_handlers()?;
        let timer = LeaseTimer::new(&self.queue);
        let mut pool = Pool::new(handlers, self.concurrency, timer, self.timeout, self.on_end);
        let mut stop = self.stop.subscribe();
        let mut shutdown = pin!(shutdown);
        let mut fetch: Option<Fetch> = None;
        let result = loop {
            let capacity = pool.capacity();
            // A topic that has capacity again must be in the reserve; the waiting one is withdrawn.
            if fetch.as_ref().is_none_or(|fetch| fetch.differs_from(&capacity)) {
                fetch = Fetch::start(&self.queue, capacity, &self.outage);
            }
            tokio::select! {
                biased;
                () = &mut shutdown => break Ok(()),
                _ = stop.wait_for(|stop| *stop) => break Ok(()),
                () = pool.join_next(), if !pool.is_idle() => {}
                jobs = Fetch::jobs(&mut fetch) => match jobs {
                    Ok(jobs) => jobs.into_iter().for_each(|job| pool.start(job)),
                    Err(error) => break Err(error),
                },
            }
        };
        drop(fetch);
        let tally = pool.shut_down(self.grace).await;
        result.map(|()| tally)
    }

    /// Runs on a runtime of its own and blocks the thread until it is [stopped](Worker::stopper).
    /// For programs without a runtime, whose handlers are usually added with
    /// [`handle_blocking`](Worker::handle_blocking).
    ///
    /// # Panics
    ///
    /// When called inside an async task.
    pub fn run_blocking(self) -> Result<Tally, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| {
            Error::unavailable(format!("the worker's runtime could not be started: {error}"))
        })?;
        let result = runtime.block_on(self.run());
        // A blocking handler that outlives the grace must not block the caller.
        runtime.shutdown_background();
        result
    }

    fn checked_handlers(&self) -> Result<Vec<Handler>, Error> {
        let mut handlers: Vec<Handler> = Vec::new();
        for handler in &self.handlers {
            TopicName::new(&handler.topic)?;
            if handlers.iter().any(|other| other.topic == handler.topic) {
                let text = format!("topic {:?} has two handlers; give it one", handler.topic);
                return Err(Error::invalid(text));
            }
            handlers.push(handler.clone());
        }
        for (topic, concurrency) in &self.limits {
            let Some(handler) = handlers.iter_mut().find(|handler| handler.topic == *topic) else {
                let text = format!("topic {topic:?} has a concurrency but no handler");
                return Err(Error::invalid(text));
            };
            handler.concurrency = *concurrency;
        }
        let idle = self.concurrency == 0 || handlers.iter().all(|handler| handler.concurrency == 0);
        if idle {
            return Err(Error::invalid(
                "the worker could never take a job; give it a handler and a concurrency above 0",
            ));
        }
        Ok(handlers)
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topics: Vec<&str> =
            self.handlers.iter().map(|handler| handler.topic.as_str()).collect();
        f.debug_struct("Worker")
            .field("topics", &topics)
            .field("concurrency", &self.concurrency)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}

/// Stops a [`Worker`]; clones stop the same one.
#[derive(Clone, Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stopper {
    /// Asks the worker to stop; running handlers have its grace to finish.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}
