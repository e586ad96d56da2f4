//! The running jobs: how many may run at once, to which handler each belongs, how they end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dormouse_core::limits::RESERVE_MAX;
use tokio::sync::watch;
use tokio::task::{Id, JoinHandle, JoinSet};

use super::job::Job;
use super::lease_timer::LeaseTimer;
use super::outcome::Outcome;
use super::supervise::supervise;
use super::tally::{End, Tally};
use crate::leased_job::LeasedJob;

/// Starts a handler on a task or thread of its own, where a panic ends nothing else.
pub(crate) type Start = Arc<dyn Fn(Job) -> JoinHandle<Outcome> + Send + Sync>;

/// Hears how each job ended.
pub(crate) type OnEnd = Arc<dyn Fn(&Job, End) + Send + Sync>;

/// A topic and the function that handles its jobs.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) topic: String,
    pub(crate) start: Start,
    pub(crate) concurrency: usize,
}

/// The jobs that the pool could take now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) topics: Vec<String>,
    pub(crate) max: usize,
}

pub(crate) struct Pool {
    handlers: Vec<Handler>,
    concurrency: usize,
    /// Running jobs per handler.
    busy: Vec<usize>,
    tasks: JoinSet<End>,
    /// The index of each task's handler.
    handler_of: HashMap<Id, usize>,
    timer: LeaseTimer,
    /// How long a handler may run.
    timeout: Option<Duration>,
    on_end: Option<OnEnd>,
    cancel: watch::Sender<bool>,
    tally: Tally,
}

impl Pool {
    pub(crate) fn new(
        handlers: Vec<Handler>,
        concurrency: usize,
        timer: LeaseTimer,
        timeout: Option<Duration>,
        on_end: Option<OnEnd>,
    ) -> Pool {
        Pool {
            busy: vec![0; handlers.len()],
            handlers,
            concurrency,
            tasks: JoinSet::new(),
            handler_of: HashMap::new(),
            timer,
            timeout,
            on_end,
            cancel: watch::Sender::new(false),
            tally: Tally::default(),
        }
    }

    /// The topics with free capacity, and how many jobs one reserve may take so that neither a
    /// topic nor the whole exceeds its limit.
    pub(crate) fn capacity(&self) -> Capacity {
        let mut capacity =
            Capacity { topics: Vec::new(), max: self.concurrency - self.tasks.len() };
        capacity.max = capacity.max.min(RESERVE_MAX);
        if capacity.max == 0 {
            return capacity;
        }
        for (handler, busy) in self.handlers.iter().zip(&self.busy) {
            let free = handler.concurrency.saturating_sub(*busy);
            if free > 0 {
                capacity.topics.push(handler.topic.clone());
                capacity.max = capacity.max.min(free);
            }
        }
        capacity
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Starts the handler of a job.
    pub(crate) fn start(&mut self, leased: LeasedJob) {
        let mine = |handler: &Handler| handler.topic == leased.topic();
        let Some(index) = self.handlers.iter().position(mine) else {
            // No handler has this topic: the backend should not have returned it.
            return leased.forget();
        };
        let job = Job::new(leased);
        let run = (self.handlers[index].start)(job.clone());
        let (timer, cancel) = (self.timer.clone(), self.cancel.subscribe());
        let (timeout, on_end) = (self.timeout, self.on_end.clone());
        let task = self.tasks.spawn(async move {
            let end = supervise(job.clone(), run, timer, timeout, cancel).await;
            if let Some(on_end) = on_end {
                on_end(&job, end);
            }
            end
        });
        self.handler_of.insert(task.id(), index);
        self.busy[index] += 1;
    }

    /// Waits until one job has ended; returns at once if none is running.
    pub(crate) async fn join_next(&mut self) {
        let (id, end) = match self.tasks.join_next_with_id().await {
            Some(Ok((id, end))) => (id, end),
            // The task panicked: its guard has given the job back.
            Some(Err(error)) => (error.id(), End::Released),
            None => return,
        };
        self.tally.count(end);
        if let Some(index) = self.handler_of.remove(&id) {
            self.busy[index] -= 1;
        }
    }

    /// Waits for the running jobs, at most for the grace, then gives the others back.
    pub(crate) async fn shut_down(mut self, grace: Duration) -> Tally {
        let all_ended = async {
            while !self.is_idle() {
                self.join_next().await;
            }
        };
        if tokio::time::timeout(grace, all_ended).await.is_err() {
            self.cancel.send_replace(true);
            while !self.is_idle() {
                self.join_next().await;
            }
        }
        self.tally
    }
}
