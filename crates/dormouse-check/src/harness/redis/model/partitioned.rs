//! Topics of several partitions: which job comes first over partitions is chance, so there is no
//! answer to compare with. What must hold whatever the order: nothing is lost, nothing is early,
//! nothing is given twice while it is leased, fences grow, a key has one job, counts are right.

use std::collections::BTreeMap;

use bytes::Bytes;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::*;
use dormouse_core::topic::TopicName;

use crate::faults::lossy::Loss;
use crate::generate::rng::Rng;
use crate::generate::vocabulary::topic;
use crate::harness::redis::model::keyspace::check_keys;
use crate::harness::redis::model::system::{Rig, SERVERS, Subject};

/// As many as a topic has here.
const PARTITIONS: u16 = 4;
const TOPICS: u16 = 2;
const KEYS: [&str; 5] = ["k", "l", "m", "n", "o"];

/// A job that is there.
struct Job {
    topic: TopicName,
    key: Option<Bytes>,
    /// From then on it may be given: due, or its lease is over.
    visible_at: u64,
    /// The fence that was given last.
    fence: u64,
    /// Its token is good: neither acked, nacked nor taken again.
    is_held: bool,
}

/// A history with the jobs that must be there.
struct Spread<'a> {
    rig: &'a Rig,
    subject: Subject,
    rng: Rng,
    jobs: BTreeMap<JobId, Job>,
    puts: u64,
}

/// Runs the history of a seed; gives how many commands it had.
pub fn run(rig: &Rig, seed: u64) -> Result<u64, String> {
    let subject = Subject::new(rig, PARTITIONS);
    let rng = Rng::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let mut world = Spread { rig, subject, rng, jobs: BTreeMap::new(), puts: 0 };
    let steps = 100 + world.rng.below(100);
    for step in 0..steps {
        world.step().map_err(|why| format!("step {step}: {why}"))?;
    }
    world.drain()?;
    check_keys(&rig.redis, world.now_ms())?;
    Ok(steps)
}

impl Spread<'_> {
    fn now_ms(&self) -> u64 {
        self.subject.clock.now_ms()
    }

    fn ask(&mut self, command: Command) -> Result<Reply, String> {
        let server = self.rng.below(SERVERS as u64) as usize;
        let shown = format!("{command:?}");
        let answer = self.subject.ask(server, command)?;
        answer.map_err(|error| format!("{shown} is refused: {error}"))
    }

    fn step(&mut self) -> Result<(), String> {
        match self.rng.below(100) {
            0..30 => self.put(),
            30..55 => self.reserve(None),
            55..75 => self.end(),
            75..80 => self.cancel(),
            80..85 => self.count(),
            85..95 => {
                self.subject.clock.advance(self.rng.below(12));
                Ok(())
            }
            95..97 => {
                self.rig.redis.must(&["SCRIPT", "FLUSH"]);
                Ok(())
            }
            _ => {
                self.rig.lose(Loss::Answer);
                Ok(())
            }
        }
    }

    fn topic(&mut self) -> TopicName {
        topic(self.rng.below(TOPICS.into()) as u16)
    }

    fn put(&mut self) -> Result<(), String> {
        let mut puts = Vec::new();
        for _ in 0..1 + self.rng.below(3) {
            self.puts += 1;
            let mut put = Put::new(self.topic(), format!("body {}", self.puts));
            put.delay_ms = Some(self.rng.below(8) as i64);
            put.ttr_ms = Some(1 + self.rng.below(20) as i64);
            put.attempts_max = Some(0);
            put.priority = self.rng.pick(&[None, Some(1)]).copied().flatten();
            let key = self.rng.pick(&KEYS).map(|key| Bytes::from_static(key.as_bytes()));
            put.key = key.filter(|_| self.rng.chance(40));
            if put.key.is_none() && self.rng.chance(40) {
                put.group = self.rng.pick(&KEYS).map(|group| Bytes::from_static(group.as_bytes()));
            }
            puts.push(put);
        }
        let Reply::Put(replies) = self.ask(Command::Put(puts.clone()))? else {
            return Err("a put is answered by something else".to_owned());
        };
        for (put, reply) in puts.into_iter().zip(replies) {
            let reply = reply.map_err(|error| format!("{put:?} is refused: {error}"))?;
            let has_key = |job: &Job| job.topic == put.topic && job.key == put.key;
            let taken = put.key.is_some() && self.jobs.values().any(has_key);
            match reply.outcome {
                PutOutcome::Created if taken => return Err(format!("{put:?} has a key twice")),
                PutOutcome::Created => {
                    let (topic, visible_at) = (put.topic, reply.due_at);
                    let key = put.key;
                    let job = Job { topic, key, visible_at, fence: 0, is_held: false };
                    if self.jobs.insert(reply.id, job).is_some() {
                        return Err(format!("id {} is given again", reply.id));
                    }
                }
                _ if self.jobs.get(&reply.id).is_some_and(has_key) => {}
                _ => return Err(format!("{put:?} is answered {reply:?}")),
            }
        }
        Ok(())
    }

    /// Takes jobs of this topic, or of some.
    fn reserve(&mut self, name: Option<TopicName>) -> Result<(), String> {
        let topics = match (name, self.rng.chance(30)) {
            (Some(name), _) => vec![name],
            (None, true) => vec![topic(0), topic(1)],
            (None, false) => vec![self.topic()],
        };
        let max = 1 + self.rng.below(6) as usize;
        let wait_ms = 0;
        let reserve = Reserve { topics: topics.clone(), max, wait_ms, ttr_ms: None, session: None };
        let Reply::Jobs(given) = self.ask(Command::Reserve(reserve))? else {
            return Err("a reserve is answered by something else".to_owned());
        };
        let now_ms = self.now_ms();
        let is_visible = |job: &Job| topics.contains(&job.topic) && job.visible_at <= now_ms;
        if given.len() > max || given.is_empty() && self.jobs.values().any(is_visible) {
            return Err(format!("{} of {max} jobs are given", given.len()));
        }
        for leased in given {
            let job = self.jobs.get_mut(&leased.id).ok_or("a job that is gone is given")?;
            if job.visible_at > now_ms || job.topic != leased.topic || job.key != leased.key {
                return Err(format!("{leased:?} is early, leased or another"));
            }
            if leased.token.fence <= job.fence {
                return Err(format!("{leased:?} comes after fence {}", job.fence));
            }
            (job.fence, job.is_held, job.visible_at) =
                (leased.token.fence, true, leased.expires_at);
        }
        Ok(())
    }

    /// Acks or nacks some job, mostly with a good token.
    fn end(&mut self) -> Result<(), String> {
        let taken = self.jobs.iter().filter(|(_, job)| job.fence > 0);
        let taken: Vec<(JobId, u64)> = taken.map(|(id, job)| (*id, job.fence)).collect();
        let Some(&(id, fence)) = self.rng.pick(&taken) else { return Ok(()) };
        let fence = fence - u64::from(self.rng.chance(15));
        let (token, delay_ms) = (Token { id, fence }, self.rng.below(6));
        let acks = self.rng.chance(50);
        let command = if acks {
            Command::Ack(vec![token])
        } else {
            let delay_ms = Some(delay_ms as i64);
            Command::Nack(vec![Nack { token, delay_ms, priority: None, error: None }])
        };
        let Reply::Ended(mut ended) = self.ask(command)? else {
            return Err("an ack is answered by something else".to_owned());
        };
        let now_ms = self.now_ms();
        let Some(job) = self.jobs.get_mut(&id) else { return Ok(()) };
        let is_good = job.is_held && job.fence == fence;
        match ended.pop() {
            Some(Ok(EndReply::Done)) if is_good && acks => {
                self.jobs.remove(&id);
                Ok(())
            }
            Some(Ok(EndReply::Retry { due_at })) if is_good && due_at == now_ms + delay_ms => {
                (job.is_held, job.visible_at) = (false, due_at);
                Ok(())
            }
            Some(Err(error)) if !is_good && error.code == Code::LeaseLost => Ok(()),
            other => Err(format!("{token}, good or not: {is_good}, is answered {other:?}")),
        }
    }

    fn cancel(&mut self) -> Result<(), String> {
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        let Some(&id) = self.rng.pick(&ids) else { return Ok(()) };
        let cancel = Cancel { target: Target::Id(id), unless_leased: false };
        match self.ask(Command::Cancel(vec![cancel]))? {
            Reply::Changed(items) if items.iter().all(Result::is_ok) => {
                self.jobs.remove(&id);
                Ok(())
            }
            other => Err(format!("the cancel of {id} is answered {other:?}")),
        }
    }

    fn count(&mut self) -> Result<(), String> {
        let (name, now_ms) = (self.topic(), self.now_ms());
        let there = self.jobs.values().filter(|job| job.topic == name);
        let (want, ready) = there.fold((0, 0), |(all, ready), job| {
            (all + 1, ready + u64::from(job.visible_at <= now_ms))
        });
        let stats = self.ask(Command::Stats(Stats { topic: Some(name) }));
        let stats = match stats {
            Ok(Reply::Stats(stats)) => stats,
            Err(_) if want == 0 => return Ok(()),
            other => return Err(format!("{want} jobs, but {other:?}")),
        };
        let have = stats.counts.waiting + stats.counts.leased + stats.counts.dead;
        if (have, stats.ready) != (want, ready) {
            return Err(format!("{want} jobs, {ready} of them ready, but {stats:?}"));
        }
        Ok(())
    }

    /// Everything that is there is given in the end.
    fn drain(&mut self) -> Result<(), String> {
        self.rig.lose(Loss::None);
        self.subject.clock.advance(1_000);
        while let Some(name) = self.jobs.values().next().map(|job| job.topic.clone()) {
            self.reserve(Some(name))?;
            let held = self.jobs.iter().filter(|(_, job)| job.is_held);
            let tokens: Vec<Token> =
                held.map(|(&id, job)| Token { id, fence: job.fence }).collect();
            self.ask(Command::Ack(tokens.clone()))?;
            for token in tokens {
                self.jobs.remove(&token.id);
            }
        }
        self.count()
    }
}
