//! The jobs at work: how many may be, which are, and how they end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dormouse_core::limits::RESERVE_MAX;
use tokio::sync::watch;
use tokio::task::{Id, JoinHandle, JoinSet};

use super::attend::attend;
use super::job::Job;
use super::outcome::Outcome;
use super::pulse::Pulse;
use super::tally::{End, Tally};
use crate::reserved::Reserved;

/// Starts a handler on a task or thread of its own, where a panic ends nothing else.
pub(crate) type Start = Arc<dyn Fn(Job) -> JoinHandle<Outcome> + Send + Sync>;

/// A topic and who handles its jobs.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) topic: String,
    pub(crate) start: Start,
    pub(crate) concurrency: usize,
}

/// What the crew could take now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) topics: Vec<String>,
    pub(crate) max: usize,
}

pub(crate) struct Crew {
    lines: Vec<Line>,
    concurrency: usize,
    /// Per line, how many are at work.
    busy: Vec<usize>,
    tasks: JoinSet<End>,
    /// Which line a task works for; also of one that failed.
    works_for: HashMap<Id, usize>,
    pulse: Pulse,
    hurry: watch::Sender<bool>,
    tally: Tally,
}

impl Crew {
    pub(crate) fn new(lines: Vec<Line>, concurrency: usize, pulse: Pulse) -> Crew {
        Crew {
            busy: vec![0; lines.len()],
            lines,
            concurrency,
            tasks: JoinSet::new(),
            works_for: HashMap::new(),
            pulse,
            hurry: watch::Sender::new(false),
            tally: Tally::default(),
        }
    }

    /// The topics with a free place, and how many jobs may come at once without any topic or the
    /// whole getting more than its share.
    pub(crate) fn offer(&self) -> Offer {
        let mut offer = Offer { topics: Vec::new(), max: self.concurrency - self.tasks.len() };
        offer.max = offer.max.min(RESERVE_MAX);
        if offer.max == 0 {
            return offer;
        }
        for (line, busy) in self.lines.iter().zip(&self.busy) {
            let free = line.concurrency.saturating_sub(*busy);
            if free > 0 {
                offer.topics.push(line.topic.clone());
                offer.max = offer.max.min(free);
            }
        }
        offer
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Puts a job into its handler's hands.
    pub(crate) fn start(&mut self, reserved: Reserved) {
        let mine = |line: &Line| line.topic == reserved.topic();
        let Some(index) = self.lines.iter().position(mine) else {
            // A topic that was not asked for: not ours to judge.
            return reserved.forget();
        };
        let job = Job::new(reserved);
        let run = (self.lines[index].start)(job.clone());
        let attended = attend(job, run, self.pulse.clone(), self.hurry.subscribe());
        let task = self.tasks.spawn(attended);
        self.works_for.insert(task.id(), index);
        self.busy[index] += 1;
    }

    /// Waits until one job has ended; at once if none is at work.
    pub(crate) async fn one_ended(&mut self) {
        let (id, end) = match self.tasks.join_next_with_id().await {
            Some(Ok((id, end))) => (id, end),
            // It fell over itself: its guard has given the job back.
            Some(Err(error)) => (error.id(), End::Released),
            None => return,
        };
        self.tally.count(end);
        if let Some(index) = self.works_for.remove(&id) {
            self.busy[index] -= 1;
        }
    }

    /// Waits for the jobs at work, at most for the grace; what is not ready then is given back.
    pub(crate) async fn leave(mut self, grace: Duration) -> Tally {
        let all_ended = async {
            while !self.is_idle() {
                self.one_ended().await;
            }
        };
        if tokio::time::timeout(grace, all_ended).await.is_err() {
            self.hurry.send_replace(true);
            while !self.is_idle() {
                self.one_ended().await;
            }
        }
        self.tally
    }
}
