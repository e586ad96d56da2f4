//! get, peek, list: read jobs without taking them.

use std::collections::VecDeque;

use dormouse_core::error::Error;
use dormouse_core::job::{JobId, State};
use dormouse_core::limits::PAGE_MAX;
use dormouse_core::op::{self, JobView, Page, Target};
use dormouse_core::topic::TopicName;

use crate::block::block_on;
use crate::call::{Call, Items};
use crate::change::by_key;
use crate::pending::Pending;
use crate::queue::Queue;

impl Queue {
    /// A job as it is now; `not_found` if it was acked, was cancelled or never existed.
    pub fn get(&self, id: JobId) -> Call<Target, JobView> {
        Call::new(self, Ok(Target::Id(id)), send_get)
    }

    /// The job of this key as it is now.
    pub fn get_key(&self, topic: &str, key: impl AsRef<[u8]>) -> Call<Target, JobView> {
        Call::new(self, by_key(topic, key.as_ref()), send_get)
    }

    /// Reads many jobs; answers per item, in order.
    pub fn get_many(&self, items: Vec<Target>) -> Call<Vec<Target>, Items<JobView>> {
        Call::new(self, Ok(items), |queue, items| queue.call(op::Get(items)))
    }

    /// The next job of a state: ready as reserve would give it, delayed by due time, leased by
    /// expiry, dead by age.
    pub fn peek(&self, topic: &str, state: State) -> Call<op::Peek, Option<JobView>> {
        let options = TopicName::new(topic).map(|topic| op::Peek { topic, state });
        Call::new(self, options, Queue::call)
    }

    /// A page of the jobs of a state; [`walk`](Call::walk) iterates over all of them.
    ///
    /// ```
    /// # use dormouse::{Queue, State};
    /// let queue = Queue::memory();
    /// queue.put("mails", "one").wait()?;
    /// let page = queue.list("mails", State::Ready).limit(100).wait()?;
    /// assert_eq!(page.jobs.len(), 1);
    /// for job in queue.list("mails", State::Ready).walk() {
    ///     println!("{} waits since {}", job?.job.id, page.jobs[0].due_at);
    /// }
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    pub fn list(&self, topic: &str, state: State) -> Call<op::List, Page> {
        let options = TopicName::new(topic).map(|topic| op::List {
            topic,
            state,
            cursor: None,
            limit: PAGE_MAX,
            range: op::ListRange::default(),
        });
        Call::new(self, options, Queue::call)
    }
}

fn send_get(queue: &Queue, target: Target) -> Pending<JobView> {
    queue.call_one(op::Get(vec![target]))
}

impl Call<op::List, Page> {
    /// How many at most; as many as a page may hold unless given.
    pub fn limit(self, limit: usize) -> Self {
        self.set(|list| list.limit = limit)
    }

    /// Where the last page ended: its `cursor`.
    pub fn after(self, cursor: impl Into<String>) -> Self {
        self.set(|list| list.cursor = Some(cursor.into()))
    }

    /// All jobs from here on, fetched page by page as they are read.
    pub fn walk(self) -> Walk {
        let (queue, options) = self.into_parts();
        match options {
            Ok(list) => Walk { queue, next: Some(Ok(list)), jobs: VecDeque::new() },
            Err(error) => Walk { queue, next: Some(Err(error)), jobs: VecDeque::new() },
        }
    }
}

/// All jobs of a state, page by page: [`next_job`](Walk::next_job) in async code, or an iterator
/// that blocks the thread.
///
/// Jobs that move meanwhile may be returned twice or not at all; the others are returned once.
#[derive(Debug)]
#[must_use = "nothing is sent until it is iterated"]
pub struct Walk {
    queue: Queue,
    /// The request for the next page; an error ends the walk once it was returned.
    next: Option<Result<op::List, Error>>,
    jobs: VecDeque<JobView>,
}

impl Walk {
    /// The next job; `None` at the end.
    pub async fn next_job(&mut self) -> Option<Result<JobView, Error>> {
        loop {
            if let Some(job) = self.jobs.pop_front() {
                return Some(Ok(job));
            }
            if let Err(error) = self.fetch().await? {
                return Some(Err(error));
            }
        }
    }

    async fn fetch(&mut self) -> Option<Result<(), Error>> {
        // Cloned, so that a dropped `next_job` leaves the walk where it was.
        let list = match self.next.clone()? {
            Ok(list) => list,
            Err(error) => {
                self.next = None;
                return Some(Err(error));
            }
        };
        let page = self.queue.call(list.clone()).await;
        self.next = None;
        Some(page.map(|page| {
            self.next = page.cursor.map(|cursor| Ok(op::List { cursor: Some(cursor), ..list }));
            self.jobs = page.jobs.into();
        }))
    }
}

impl Iterator for Walk {
    type Item = Result<JobView, Error>;

    fn next(&mut self) -> Option<Result<JobView, Error>> {
        block_on(self.next_job())
    }
}
