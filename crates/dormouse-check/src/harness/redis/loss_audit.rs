//! Records promises, to find out which of them a fault broke: puts of jobs that are due in an
//! hour, and acks of jobs that were taken at once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{State, Token};
use dormouse_core::limits::PAGE_MAX;
use dormouse_core::op::{LeasedJob, List, ListRange, Put, Reserve};
use dormouse_core::topic::TopicName;

use crate::generate::body::{body, number_of};
use crate::harness::process::client::Client;

/// Bodies of all audits are different.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

const STATES: [State; 4] = [State::Leased, State::Delayed, State::Ready, State::Dead];

/// An answer that promised something. Jobs are told apart by their bodies: a failover that loses
/// jobs gives their ids to others.
#[derive(Clone, Copy, Debug)]
struct Entry {
    number: u64,
    told_at: Instant,
}

/// Everything that was answered.
#[derive(Debug, Default)]
struct Book {
    puts: Vec<Entry>,
    acks: Vec<Entry>,
    tokens: Vec<Token>,
    calls: usize,
    unconfirmed: usize,
    unavailable: usize,
}

/// The load and its book.
pub struct LossAudit {
    /// Here jobs are put and stay.
    kept: TopicName,
    /// Here they are taken at once.
    done: TopicName,
    book: Mutex<Book>,
    stop: AtomicBool,
}

/// The promises that a fault broke.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Calls made.
    pub calls: usize,
    /// Puts and acks that were answered with success.
    pub promised: usize,
    /// Answers `unconfirmed`.
    pub unconfirmed: usize,
    /// Answers `unavailable`.
    pub unavailable: usize,
    /// Jobs that were put and are not there.
    pub puts: usize,
    /// Jobs that were acked and are there again.
    pub acks: usize,
    /// How long before the end of service the first promise was made that was broken.
    pub window: Duration,
    /// Tokens of one job that were given twice.
    pub twins: usize,
}

impl Losses {
    /// Promises that were broken.
    pub fn lost(&self) -> usize {
        self.puts + self.acks
    }
}

impl LossAudit {
    /// An empty one; the topics are its own.
    pub fn new(kept: &str, done: &str) -> LossAudit {
        let topic = |name: &str| TopicName::new(name).expect("a good name");
        let (book, stop) = (Mutex::default(), AtomicBool::new(false));
        LossAudit { kept: topic(kept), done: topic(done), book, stop }
    }

    /// Works on these backends with `threads` threads on each, while `faults` runs.
    pub fn keep<T>(
        &self,
        backends: &[Arc<dyn Backend>],
        threads: usize,
        faults: impl FnOnce() -> T,
    ) -> T {
        thread::scope(|scope| {
            let _stop = Stop(&self.stop);
            for backend in backends {
                for _ in 0..threads {
                    scope.spawn(|| {
                        let client = Client::new(backend);
                        while !self.stop.load(Ordering::SeqCst) {
                            self.step(&client);
                        }
                    });
                }
            }
            faults()
        })
    }

    /// A put that stays, a put that is taken, and acks of what was.
    fn step(&self, client: &Client) {
        let number = NEXT_NUMBER.fetch_add(2, Ordering::Relaxed);
        let put = |topic: &TopicName, number: u64, delay_ms| {
            Command::Put(vec![Put { delay_ms, ..Put::new(topic.clone(), body(number)) }])
        };
        let topics = vec![self.done.clone()];
        let reserve = Reserve { topics, max: 4, wait_ms: 0, ttr_ms: None, session: None };
        let (kept, taken) =
            (put(&self.kept, number, Some(3_600_000)), put(&self.done, number + 1, None));
        let calls = vec![kept, taken, Command::Reserve(reserve)];
        let mut taken = Vec::new();
        let answers = client.call(calls).expect("every call is answered");
        for (at, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(Reply::Put(items)) => items.into_iter().for_each(|item| {
                    self.note(item.map(|_| number), |book, entry| {
                        if at == 0 {
                            book.puts.push(entry);
                        }
                    });
                }),
                Ok(Reply::Jobs(jobs)) => taken = jobs,
                Ok(other) => panic!("{other:?}"),
                Err(error) => self.note(Err(error), |_, _| {}),
            }
        }
        if !taken.is_empty() {
            self.ack(client, &taken);
        }
    }

    fn ack(&self, client: &Client, jobs: &[LeasedJob]) {
        let tokens: Vec<Token> = jobs.iter().map(|job| job.token).collect();
        self.book.lock().unwrap_or_else(PoisonError::into_inner).tokens.extend(&tokens);
        match client.call_one(Command::Ack(tokens)) {
            Ok(Reply::Ended(items)) => {
                for (item, job) in items.into_iter().zip(jobs) {
                    let number = number_of(&job.body).expect("a body of this audit");
                    self.note(item.map(|_| number), |book, entry| {
                        // Also one that is gone must not come back.
                        book.acks.push(entry);
                    });
                }
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => self.note(Err(error), |_, _| {}),
        }
    }

    fn note(&self, outcome: Result<u64, Error>, promise: impl FnOnce(&mut Book, Entry)) {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.calls += 1;
        match outcome {
            Ok(number) => promise(&mut book, Entry { number, told_at: Instant::now() }),
            Err(error) => match error.code {
                Code::Unconfirmed => book.unconfirmed += 1,
                Code::Unavailable => book.unavailable += 1,
                // The lease was lost with the primary.
                Code::LeaseLost | Code::Busy => {}
                _ => panic!("{error}"),
            },
        }
    }

    /// Looks at what is there; `ended_at` is when the primary that knew more was gone.
    pub fn audit(self, backend: &Arc<dyn Backend>, ended_at: Instant) -> Losses {
        let client = Client::new(backend);
        let (kept, done) = (all(&client, &self.kept), all(&client, &self.done));
        let book = self.book.into_inner().unwrap_or_else(PoisonError::into_inner);
        let puts: Vec<&Entry> =
            book.puts.iter().filter(|put| !kept.contains(&put.number)).collect();
        let acks: Vec<&Entry> = book.acks.iter().filter(|ack| done.contains(&ack.number)).collect();
        let before = |entry: &&Entry| ended_at.saturating_duration_since(entry.told_at);
        let window = puts.iter().chain(&acks).map(before).max().unwrap_or_default();
        let distinct: BTreeSet<&Token> = book.tokens.iter().collect();
        Losses {
            calls: book.calls,
            promised: book.puts.len() + book.acks.len(),
            unconfirmed: book.unconfirmed,
            unavailable: book.unavailable,
            puts: puts.len(),
            acks: acks.len(),
            window,
            twins: book.tokens.len() - distinct.len(),
        }
    }
}

struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The numbers of all jobs of a topic.
fn all(client: &Client, topic: &TopicName) -> BTreeSet<u64> {
    let mut numbers = BTreeSet::new();
    for state in STATES {
        let mut cursor = None;
        loop {
            let list = List {
                topic: topic.clone(),
                state,
                cursor,
                limit: PAGE_MAX,
                range: ListRange::default(),
            };
            match client.call_one(Command::List(list)) {
                Ok(Reply::Page(page)) => {
                    let jobs = page.jobs.iter();
                    numbers.extend(jobs.filter_map(|view| number_of(&view.job.content.body)));
                    cursor = page.cursor;
                }
                other => panic!("{other:?}"),
            }
            if cursor.is_none() {
                break;
            }
        }
    }
    numbers
}
