//! The load: several threads put, take, end, cancel and move jobs, and tell everything.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use dormouse_core::backoff::Backoff;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{
    Cancel, Ended, Extend, LeasedJob, Nack, Put, PutOutcome, Release, Reschedule, Reserve, Target,
};
use dormouse_core::topic::TopicName;
use dormouse_disk::engine::Engine;

use super::body::{body, number_of};
use super::client::{Client, Log, wall_us};
use super::event::{Answer, Ask, Event, Mode, PutAsk, Taken, Verb};
use crate::sim::rng::Rng;

/// All topics there are.
pub const TOPICS: [&str; 2] = ["red", "blue"];
/// So many jobs at most, so that each can be listed.
const JOBS_MAX: i64 = 2_000;
const CALLS_PER_BATCH: u64 = 6;
/// Keys of each kind.
const KEYS: u64 = 12;
/// After its ack, a key of the kind `hold` stays taken so long.
pub const HOLD_MS: i64 = 400;

/// What the threads of a process know together.
#[derive(Default)]
pub struct Shared {
    ids: Mutex<Vec<u64>>,
    jobs: AtomicI64,
}

impl Shared {
    /// Begins with the jobs there are.
    pub fn new(ids: Vec<u64>) -> Shared {
        let jobs = AtomicI64::new(ids.len() as i64);
        Shared { ids: Mutex::new(ids), jobs }
    }

    fn pick(&self, rng: &mut Rng) -> Option<u64> {
        rng.pick(&self.ids.lock().unwrap_or_else(PoisonError::into_inner)).copied()
    }

    fn note(&self, answer: &Answer, ask: &Ask) {
        let more = match (answer, ask) {
            (Answer::Created(id), _) => {
                self.ids.lock().unwrap_or_else(PoisonError::into_inner).push(*id);
                1
            }
            (Answer::Done, Ask::Token { verb: Verb::Ack, .. }) => -1,
            (Answer::Changed(_), Ask::CancelId(_) | Ask::CancelKey { .. }) => -1,
            _ => 0,
        };
        self.jobs.fetch_add(more, Ordering::Relaxed);
    }
}

/// Makes calls and tells them.
pub struct Teller<'l> {
    client: Client,
    log: &'l Log,
    next_call: u64,
}

impl<'l> Teller<'l> {
    /// Calls of different threads have different names.
    pub fn new(engine: &Engine, log: &'l Log, thread: u64) -> Teller<'l> {
        Teller { client: Client::new(engine), log, next_call: thread << 32 }
    }

    /// Tells, calls, tells.
    pub fn call(&mut self, asks: Vec<Ask>) -> Result<Vec<Answer>, Error> {
        let first = self.next_call;
        self.next_call += asks.len() as u64;
        let commands: Vec<Command> = asks.iter().map(command).collect::<Result<_, _>>()?;
        let at_us = wall_us();
        let asked = asks.into_iter().zip(first..);
        self.tell(asked.map(|(ask, call)| Event::Asked { call, at_us, ask }).collect())?;
        let replies = self.client.call(commands)?;
        let at_us = wall_us();
        let answers: Vec<Answer> = replies.into_iter().map(answer).collect::<Result<_, _>>()?;
        let told = answers.iter().cloned().zip(first..);
        self.tell(told.map(|(answer, call)| Event::Told { call, at_us, answer }).collect())?;
        Ok(answers)
    }

    /// Takes jobs.
    pub fn reserve(&mut self, max: usize, wait_ms: i64) -> Result<Vec<Taken>, Error> {
        match self.call(vec![Ask::Reserve { max, wait_ms }])?.pop() {
            Some(Answer::Jobs(jobs)) => Ok(jobs),
            other => Err(Error::unavailable(format!("reserve answered {other:?}"))),
        }
    }

    fn tell(&self, events: Vec<Event>) -> Result<(), Error> {
        self.log.tell(&events).map_err(|error| Error::unavailable(error.to_string()))
    }
}

/// One thread of the load.
pub struct Worker<'l> {
    teller: Teller<'l>,
    rng: Rng,
    shared: Arc<Shared>,
    /// Tokens that are good, as far as this thread knows.
    held: Vec<(u64, u64)>,
    /// Tokens that were used; some of them are good still.
    used: Vec<(u64, u64)>,
    next_number: u64,
}

impl<'l> Worker<'l> {
    /// `thread` is unique over all processes of a campaign.
    pub fn new(teller: Teller<'l>, seed: u64, thread: u64, shared: Arc<Shared>) -> Worker<'l> {
        let rng = Rng::new(seed ^ (thread << 20));
        let next_number = thread << 32;
        Worker { teller, rng, shared, held: Vec::new(), used: Vec::new(), next_number }
    }

    /// Works until the process is killed or something fails.
    pub fn run(&mut self) -> Result<(), Error> {
        loop {
            let asks = self.batch();
            let answers = self.teller.call(asks.clone())?;
            for (ask, answer) in asks.iter().zip(&answers) {
                self.shared.note(answer, ask);
                if let Answer::Jobs(jobs) = answer {
                    self.held.extend(jobs.iter().map(|job| (job.id, job.fence)));
                }
            }
        }
    }

    /// A reserve alone is told before its record is written: the kill may lose that record.
    fn batch(&mut self) -> Vec<Ask> {
        if self.rng.chance(30) {
            return vec![self.reserve()];
        }
        let count = 1 + self.rng.below(CALLS_PER_BATCH);
        (0..count).map(|_| self.choose()).collect()
    }

    fn choose(&mut self) -> Ask {
        let room = self.shared.jobs.load(Ordering::Relaxed) < JOBS_MAX;
        match self.rng.below(100) {
            0..50 if room => self.put(),
            0..58 => self.reserve(),
            58..74 => self.with_token(Verb::Ack),
            74..80 => self.with_token(Verb::Nack),
            80..84 => self.with_token(Verb::Release),
            84..88 => self.extend(),
            88..92 => self.cancel(),
            92..94 => self.cancel_key(),
            94..98 => self.reschedule(),
            _ => self.misuse(),
        }
    }

    fn reserve(&mut self) -> Ask {
        let wait_ms = if self.rng.chance(20) { 5 } else { 0 };
        Ask::Reserve { max: 1 + self.rng.below(8) as usize, wait_ms }
    }

    fn with_token(&mut self, verb: Verb) -> Ask {
        if self.held.is_empty() {
            return self.reserve();
        }
        let at = self.rng.below(self.held.len() as u64) as usize;
        let token = self.held.swap_remove(at);
        // Some are forgotten: their leases run out.
        if self.rng.chance(10) {
            return self.reserve();
        }
        self.used.push(token);
        let delay_ms = (verb == Verb::Nack).then(|| 20 + self.rng.below(200) as i64);
        Ask::Token { verb, token, forged: false, delay_ms }
    }

    fn extend(&mut self) -> Ask {
        let Some(&token) = self.rng.pick(&self.held) else { return self.reserve() };
        Ask::Token { verb: Verb::Extend, token, forged: false, delay_ms: None }
    }

    /// A token that was used, or one that never was.
    fn misuse(&mut self) -> Ask {
        let Some(&(id, fence)) = self.rng.pick(&self.used) else { return self.reserve() };
        let verbs = [Verb::Ack, Verb::Nack, Verb::Release, Verb::Extend];
        let verb = verbs[self.rng.below(4) as usize];
        let forged = self.rng.chance(30);
        let token = if forged { (id, fence + 1_000_000_000) } else { (id, fence) };
        Ask::Token { verb, token, forged, delay_ms: (verb == Verb::Nack).then_some(20) }
    }

    fn cancel(&mut self) -> Ask {
        match self.shared.pick(&mut self.rng) {
            Some(id) => Ask::CancelId(id),
            None => self.put(),
        }
    }

    fn cancel_key(&mut self) -> Ask {
        let (topic, key) = (self.topic(), self.key().0);
        Ask::CancelKey { topic, key }
    }

    fn reschedule(&mut self) -> Ask {
        match self.shared.pick(&mut self.rng) {
            Some(id) => Ask::Reschedule { id, delay_ms: self.rng.below(300) as i64 },
            None => self.put(),
        }
    }

    fn topic(&mut self) -> String {
        TOPICS[self.rng.below(TOPICS.len() as u64) as usize].to_owned()
    }

    /// A key and a mode that fits its kind: of `keep` and `hold` keys no job is ever replaced.
    fn key(&mut self) -> (String, Mode, i64) {
        let no = self.rng.below(KEYS);
        let gentle = if self.rng.chance(70) { Mode::Keep } else { Mode::Reject };
        match self.rng.below(3) {
            0 => (format!("keep-{no}"), gentle, 0),
            1 => (format!("hold-{no}"), gentle, HOLD_MS),
            _ => {
                let modes = [Mode::Keep, Mode::Replace, Mode::Earliest, Mode::Latest];
                (format!("change-{no}"), modes[self.rng.below(4) as usize], 0)
            }
        }
    }

    fn put(&mut self) -> Ask {
        let keyed = self.rng.chance(35).then(|| self.key());
        let (key, mode, key_ttl_ms) = match keyed {
            Some((key, mode, key_ttl_ms)) => (Some(key), mode, key_ttl_ms),
            None => (None, Mode::Keep, 0),
        };
        let soon_ms = 1 + self.rng.below(300) as i64;
        let (delay_ms, at_ms) = match self.rng.below(100) {
            0..40 => (None, None),
            40..70 => (Some(soon_ms), None),
            70..85 => (None, Some((wall_us() / 1_000) as i64 + soon_ms)),
            _ => (Some(3_600_000), None),
        };
        let number = self.next_number;
        self.next_number += 1;
        Ask::Put(PutAsk {
            number,
            topic: self.topic(),
            key,
            mode,
            key_ttl_ms,
            delay_ms,
            at_ms,
            ttr_ms: 200 + self.rng.below(1_000) as i64,
            attempts_max: if self.rng.chance(50) { 3 } else { 16 },
            priority: 1_000 + self.rng.below(3) as u32,
        })
    }
}

/// A call as a command.
fn command(ask: &Ask) -> Result<Command, Error> {
    Ok(match ask {
        Ask::Put(put) => Command::Put(vec![Put {
            key: put.key.clone().map(Bytes::from),
            on_conflict: put.mode.on_conflict(),
            key_ttl_ms: Some(put.key_ttl_ms),
            delay_ms: put.delay_ms,
            at_ms: put.at_ms,
            ttr_ms: Some(put.ttr_ms),
            attempts_max: Some(put.attempts_max),
            priority: Some(put.priority),
            backoff: Some(Arc::new(Backoff::Fixed { delay_ms: 50 })),
            ..Put::new(TopicName::new(&put.topic)?, body(put.number))
        }]),
        Ask::Reserve { max, wait_ms } => {
            let topics =
                TOPICS.iter().map(|name| TopicName::new(name)).collect::<Result<_, _>>()?;
            let (max, wait_ms) = (*max, *wait_ms);
            Command::Reserve(Reserve { topics, max, wait_ms, ttr_ms: None, session: None })
        }
        Ask::Token { verb, token: (id, fence), delay_ms, .. } => {
            let (token, delay_ms) = (Token { id: JobId(*id), fence: *fence }, *delay_ms);
            match verb {
                Verb::Ack => Command::Ack(vec![token]),
                Verb::Nack => {
                    let error = Some(Bytes::from_static(b"rig"));
                    Command::Nack(vec![Nack { token, delay_ms, priority: None, error }])
                }
                Verb::Release => {
                    Command::Release(vec![Release { token, delay_ms: None, priority: None }])
                }
                Verb::Extend => Command::Extend(vec![Extend { token, ttr_ms: None }]),
            }
        }
        Ask::CancelId(id) => cancel(Target::Id(JobId(*id))),
        Ask::CancelKey { topic, key } => {
            cancel(Target::Key { topic: TopicName::new(topic)?, key: Bytes::from(key.clone()) })
        }
        Ask::Reschedule { id, delay_ms } => Command::Reschedule(vec![Reschedule {
            target: Target::Id(JobId(*id)),
            delay_ms: Some(*delay_ms),
            at_ms: None,
        }]),
    })
}

fn cancel(target: Target) -> Command {
    Command::Cancel(vec![Cancel { target, unless_leased: false }])
}

/// An answer as it is told. A store that stopped is an error.
fn answer(reply: Result<Reply, Error>) -> Result<Answer, Error> {
    let refused = |error: Error| match error.code {
        Code::Unavailable | Code::Invalid => Err(error),
        code => Ok(Answer::Refused(code.as_str().to_owned())),
    };
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => return refused(error),
    };
    let answer = match reply {
        Reply::Put(mut items) => items.pop().map(|item| {
            item.map(|put| match put.outcome {
                PutOutcome::Created => Answer::Created(put.id.0),
                PutOutcome::Duplicate => Answer::Duplicate(put.id.0),
                PutOutcome::Replaced => Answer::Replaced(put.id.0),
            })
        }),
        Reply::Jobs(jobs) => Some(Ok(Answer::Jobs(jobs.iter().map(taken).collect()))),
        Reply::Ended(mut items) => items.pop().map(|item| {
            item.map(|ended| match ended {
                Ended::Done => Answer::Done,
                Ended::Dead => Answer::Dead,
                Ended::Gone => Answer::Gone,
            })
        }),
        Reply::Extended(mut items) => items.pop().map(|item| item.map(|_| Answer::Done)),
        Reply::Changed(mut items) => {
            items.pop().map(|item| item.map(|changed| Answer::Changed(changed.id.0)))
        }
        other => return Err(Error::unavailable(format!("a call was answered with {other:?}"))),
    };
    match answer {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(error)) => refused(error),
        None => Err(Error::unavailable("a call was answered with nothing")),
    }
}

fn taken(job: &LeasedJob) -> Taken {
    Taken {
        id: job.id.0,
        fence: job.token.fence,
        attempt: job.attempt,
        ttr_ms: job.ttr_ms,
        topic: job.topic.as_str().to_owned(),
        key: job.key.as_ref().map(|key| String::from_utf8_lossy(key).into_owned()),
        number: number_of(&job.body),
    }
}
