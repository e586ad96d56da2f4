//! The load: several threads put, take, end, cancel and move jobs, and tell everything.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dormouse_core::error::Error;

use crate::checker::event::{Answer, Ask, Mode, PutAsk, Verb};
use crate::generate::op::weighted;
use crate::generate::rng::Rng;
use crate::harness::process::client::wall_us;
use crate::harness::process::recorder::Recorder;

/// All topics there are.
pub const TOPICS: [&str; 2] = ["red", "blue"];
/// The most jobs at a time, so that each can be listed.
const JOBS_MAX: i64 = 2_000;
const CALLS_PER_BATCH: u64 = 6;
/// Tokens that are good to be misused.
const USED_RECENTLY: usize = 6;
const PUTS_PER_LIST: u64 = 20;
const ACKS_PER_LIST: usize = 8;
/// The longest wait of a reserve that waits long.
const LONG_WAIT_MS: u64 = 400;
/// Keys of each kind.
const KEYS: u64 = 12;
/// How long a key of the kind `hold` stays taken after its ack.
pub const HOLD_MS: i64 = 400;

/// A kind of call.
#[derive(Clone, Copy, Debug)]
enum Choice {
    Put,
    Reserve,
    End(Verb),
    Extend,
    Cancel,
    CancelKey,
    Reschedule,
    Misuse,
}

/// How often each kind of call is made.
const WEIGHTS: &[(Choice, u64)] = &[
    (Choice::Put, 50),
    (Choice::Reserve, 8),
    (Choice::End(Verb::Ack), 16),
    (Choice::End(Verb::Nack), 6),
    (Choice::End(Verb::Release), 4),
    (Choice::Extend, 4),
    (Choice::Cancel, 4),
    (Choice::CancelKey, 2),
    (Choice::Reschedule, 4),
    (Choice::Misuse, 2),
];

/// How calls are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Several commands in one batch, of one item each.
    Batches,
    /// One command at a time, some of many items; reserves that wait long. `leaves` = some of
    /// them are left before their answer.
    Lists {
        /// See above.
        leaves: bool,
    },
}

/// The state that the threads of a process share.
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

/// One thread of the load.
pub struct Worker<'l> {
    recorder: Recorder<'l>,
    rng: Rng,
    shared: Arc<Shared>,
    /// Tokens that are good, as far as this thread knows.
    held: Vec<(u64, u64)>,
    /// Tokens that were used; some of them are good still.
    used: Vec<(u64, u64)>,
    next_number: u64,
    style: Style,
}

impl<'l> Worker<'l> {
    /// `thread` is unique over all processes of a campaign.
    pub fn new(
        recorder: Recorder<'l>,
        seed: u64,
        thread: u64,
        shared: Arc<Shared>,
        style: Style,
    ) -> Worker<'l> {
        let rng = Rng::new(seed ^ (thread << 20));
        let (held, used, next_number) = (Vec::new(), Vec::new(), thread << 32);
        Worker { recorder, rng, shared, held, used, next_number, style }
    }

    /// Works until the process is killed or something fails.
    pub fn run(&mut self) -> Result<(), Error> {
        self.run_until(&AtomicBool::new(false))
    }

    /// The same, or until `stop`.
    pub fn run_until(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        while !stop.load(Ordering::Relaxed) {
            let left = match self.style {
                Style::Lists { leaves: true } if self.rng.chance(10) => {
                    let (max, wait_ms) = (4, LONG_WAIT_MS as i64);
                    Some(self.recorder.begin(Ask::Reserve { max, wait_ms })?)
                }
                _ => None,
            };
            let asks = self.batch();
            let answers = self.recorder.call(asks.clone())?;
            for (ask, answer) in asks.iter().zip(&answers) {
                self.note(ask, answer);
            }
            if let Some(begun) = left
                && let Some((ask, answer)) = self.recorder.leave(begun)?
            {
                self.note(&ask, &answer);
            }
        }
        Ok(())
    }

    fn note(&mut self, ask: &Ask, answer: &Answer) {
        self.shared.note(answer, ask);
        if let Answer::Jobs(jobs) = answer {
            self.held.extend(jobs.iter().map(|job| (job.id, job.fence)));
        }
    }

    /// A reserve alone is answered before its record is written: the kill may lose that record.
    fn batch(&mut self) -> Vec<Ask> {
        if self.rng.chance(30) {
            return vec![self.reserve()];
        }
        match self.style {
            Style::Batches => {
                let count = 1 + self.rng.below(CALLS_PER_BATCH);
                (0..count).map(|_| self.choose()).collect()
            }
            Style::Lists { .. } => match self.rng.below(100) {
                0..10 if self.has_room() => self.puts(),
                10..25 if !self.held.is_empty() => self.acks(),
                _ => vec![self.choose()],
            },
        }
    }

    /// Many into one topic.
    fn puts(&mut self) -> Vec<Ask> {
        let (topic, count) = (self.topic(), 2 + self.rng.below(PUTS_PER_LIST));
        let put = |_| match self.put() {
            Ask::Put(put) => Ask::Put(PutAsk { topic: topic.clone(), ..put }),
            other => other,
        };
        (0..count).map(put).collect()
    }

    fn acks(&mut self) -> Vec<Ask> {
        let count = self.held.len().min(ACKS_PER_LIST);
        let tokens = self.held.split_off(self.held.len() - count);
        self.used.extend(&tokens);
        let ack = |token| Ask::Token { verb: Verb::Ack, token, forged: false, delay_ms: None };
        tokens.into_iter().map(ack).collect()
    }

    fn has_room(&self) -> bool {
        self.shared.jobs.load(Ordering::Relaxed) < JOBS_MAX
    }

    fn choose(&mut self) -> Ask {
        match weighted(&mut self.rng, WEIGHTS) {
            Choice::Put if self.has_room() => self.put(),
            Choice::Put | Choice::Reserve => self.reserve(),
            Choice::End(verb) => self.with_token(verb),
            Choice::Extend => self.extend(),
            Choice::Cancel => self.cancel(),
            Choice::CancelKey => self.cancel_key(),
            Choice::Reschedule => self.reschedule(),
            Choice::Misuse => self.misuse(),
        }
    }

    fn reserve(&mut self) -> Ask {
        let long = matches!(self.style, Style::Lists { .. }) && self.rng.chance(10);
        let wait_ms = match self.rng.chance(20) {
            _ if long => self.rng.below(LONG_WAIT_MS) as i64,
            true => 5,
            false => 0,
        };
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

    /// A token that was used, or one that never was. Jobs do not live long: only what is held, or
    /// was used just now, is likely to be of one that is still there to be harmed.
    fn misuse(&mut self) -> Ask {
        let forged = self.rng.chance(50);
        let recent = &self.used[self.used.len().saturating_sub(USED_RECENTLY)..];
        let tokens = if forged && !self.held.is_empty() { &self.held } else { recent };
        let Some(&(id, fence)) = self.rng.pick(tokens) else { return self.reserve() };
        let verbs = [Verb::Ack, Verb::Nack, Verb::Release, Verb::Extend];
        let verb = verbs[self.rng.below(4) as usize];
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
