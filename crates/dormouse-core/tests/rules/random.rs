//! Random histories on two machines: one is restarted from its images, the other from the facts
//! written since the last restart. Their answers, facts and images must never differ.

use bytes::Bytes;
use dormouse_core::backend::{Answer, Request, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::fact::Fact;
use dormouse_core::holder::HolderId;
use dormouse_core::job::{JobId, State, Token};
use dormouse_core::machine::{Machine, Output};
use dormouse_core::op::*;
use dormouse_core::place::Class;
use dormouse_core::rate::Rate;
use dormouse_core::schedule::{Catchup, Overlap, ScheduleName, Template};
use dormouse_core::time::Now;
use dormouse_core::timeline::memory::MemoryTimeline;
use dormouse_core::topic::{Settings, TopicName};

use crate::holders::HolderModel;
use crate::replay::{Image, image, restored};
use crate::support::*;

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn chance(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    fn maybe<V>(&mut self, of: u64, value: impl FnOnce(&mut Rng) -> V) -> Option<V> {
        if self.chance(of) { Some(value(self)) } else { None }
    }
}

fn rate(rng: &mut Rng) -> Rate {
    Rate { jobs: 1 + rng.below(5), per_ms: 1 + rng.below(20), burst: 1 + rng.below(3) }
}

/// What the generator knows of the history.
#[derive(Default)]
struct Seen {
    tokens: Vec<Token>,
    tickets: Vec<Ticket>,
    sessions: Vec<SessionId>,
    next_id: u64,
}

impl Seen {
    fn topic(&self, rng: &mut Rng) -> TopicName {
        topic(["a", "b", "c"][rng.below(3) as usize])
    }

    fn key(&self, rng: &mut Rng) -> Bytes {
        bytes(["x", "y", "z"][rng.below(3) as usize])
    }

    fn target(&self, rng: &mut Rng) -> Target {
        if rng.chance(3) {
            return Target::Key { topic: self.topic(rng), key: self.key(rng) };
        }
        let recent = self.next_id.saturating_sub(rng.below(12));
        Target::Id(JobId(recent))
    }

    fn token(&self, rng: &mut Rng) -> Token {
        match self.tokens.len() as u64 {
            0 => Token { id: JobId(1), fence: 1 },
            count => {
                let back = rng.below(count.min(8)) as usize;
                self.tokens[self.tokens.len() - 1 - back]
            }
        }
    }

    fn session(&self, rng: &mut Rng) -> Option<SessionId> {
        let count = self.sessions.len() as u64;
        if count == 0 || !rng.chance(3) {
            return None;
        }
        Some(self.sessions[rng.below(count) as usize])
    }

    fn put(&self, rng: &mut Rng, now: Now) -> Put {
        use OnConflict::{Earliest, Keep, Latest, Reject, Replace};
        let (mut delay_ms, mut at_ms) = (None, None);
        match rng.below(3) {
            0 => delay_ms = Some(rng.below(60) as i64),
            1 => at_ms = Some((now.wall_ms + rng.below(80)) as i64 - 20),
            _ => {}
        }
        Put {
            delay_ms,
            at_ms,
            priority: rng.maybe(3, |rng| 1_022 + rng.below(4) as u32),
            ttr_ms: Some(1 + rng.below(40) as i64),
            attempts_max: Some(rng.below(4) as u32),
            key: rng.maybe(2, |rng| self.key(rng)),
            group: rng.maybe(2, |rng| bytes(["a", "b", "c"][rng.below(3) as usize])),
            on_conflict: [Keep, Reject, Replace, Earliest, Latest][rng.below(5) as usize],
            key_ttl_ms: rng.maybe(2, |rng| rng.below(50) as i64),
            expires_after_ms: rng.maybe(3, |rng| rng.below(60) as i64),
            ..Put::new(self.topic(rng), vec![0; rng.below(20) as usize])
        }
    }

    fn reserve(&self, rng: &mut Rng) -> Reserve {
        let topics = (0..=rng.below(3)).map(|_| self.topic(rng)).collect();
        Reserve {
            topics,
            max: 1 + rng.below(4) as usize,
            wait_ms: rng.maybe(2, |rng| rng.below(60) as i64).unwrap_or(0),
            ttr_ms: rng.maybe(3, |rng| 1 + rng.below(30) as i64),
            session: self.session(rng),
        }
    }

    fn settings(&self, rng: &mut Rng) -> Settings {
        if rng.chance(2) {
            return Settings::default();
        }
        Settings {
            ttr_ms: rng.maybe(3, |rng| 1 + rng.below(50)),
            jobs_max: rng.maybe(4, |rng| rng.below(10)),
            bytes_max: rng.maybe(4, |rng| rng.below(100)),
            dead_ttl_ms: rng.maybe(3, |rng| rng.below(100)),
            dead_max: rng.maybe(3, |rng| rng.below(4)),
            delay_ms: rng.maybe(4, |rng| rng.below(40)),
            expires_after_ms: rng.maybe(4, |rng| 1 + rng.below(60)),
            dead_topic: rng.maybe(3, |rng| self.topic(rng)),
            keep_done_ms: rng.maybe(2, |rng| 1 + rng.below(120)),
            leased_max: rng.maybe(4, |rng| 1 + rng.below(4)),
            rate: rng.maybe(6, rate),
            group_leased_max: rng.maybe(2, |rng| 1 + rng.below(2)),
            group_rate: rng.maybe(4, rate),
            ..Settings::default()
        }
    }

    fn command(&self, rng: &mut Rng, now: Now) -> Command {
        let name = self.topic(rng);
        match rng.below(32) {
            31 => {
                let puts = (0..rng.below(4)).map(|_| self.put(rng, now)).collect();
                Command::Chain(Chain { token: self.token(rng), puts })
            }
            0..=5 => Command::Put((0..=rng.below(3)).map(|_| self.put(rng, now)).collect()),
            6..=10 => Command::Reserve(self.reserve(rng)),
            11 | 12 => Command::Ack(vec![self.token(rng)]),
            13 => Command::Nack(vec![Nack {
                token: self.token(rng),
                delay_ms: rng.maybe(2, |rng| rng.below(30) as i64),
                priority: rng.maybe(4, |rng| 1_022 + rng.below(4) as u32),
                error: rng.maybe(2, |_| bytes("oh")),
            }]),
            14 => Command::Release(vec![Release {
                token: self.token(rng),
                delay_ms: None,
                priority: None,
            }]),
            15 => {
                let ttr_ms = rng.maybe(2, |rng| 1 + rng.below(40) as i64);
                Command::Extend(vec![Extend { token: self.token(rng), ttr_ms }])
            }
            16 => {
                let target = match rng.below(2) {
                    0 => KillTarget::Token(self.token(rng)),
                    _ => KillTarget::Resting(self.target(rng)),
                };
                Command::Kill(vec![Kill { target, error: None, priority: None }])
            }
            17 => Command::Cancel(vec![Cancel {
                target: self.target(rng),
                unless_leased: rng.chance(2),
            }]),
            18 => {
                let delay_ms = rng.maybe(2, |rng| rng.below(50) as i64);
                Command::Reschedule(vec![Reschedule {
                    target: self.target(rng),
                    delay_ms,
                    at_ms: None,
                }])
            }
            19 => Command::Revive(vec![self.target(rng)]),
            20 => Command::ReviveTopic(ReviveTopic { topic: name, max: rng.below(3) as usize }),
            21 => Command::Kick(Kick { topic: name, max: rng.below(3) as usize }),
            22 => Command::from(SetTopic { topic: name, settings: self.settings(rng) }),
            23 => Command::Pause(PauseTopic { topic: name, for_ms: Some(rng.below(40) as i64) }),
            24 => self.rare(rng, name),
            25 => self.lock(rng),
            26 => self.schedule(rng, name),
            _ => self.look(rng, name, now),
        }
    }

    fn rare(&self, rng: &mut Rng, name: TopicName) -> Command {
        match rng.below(7) {
            0 => Command::Purge(name.into()),
            6 => Command::ReleaseTopic(ReleaseTopic { topic: name, max: rng.below(4) as usize }),
            1 => Command::Resume(name),
            2 => Command::OpenSession,
            3 => Command::CloseSession(self.session(rng).unwrap_or(SessionId(0))),
            4 => {
                let back = rng.below(4) as usize;
                let ticket = self.tickets.iter().rev().nth(back);
                Command::Withdraw(ticket.copied().unwrap_or(Ticket(0)))
            }
            _ => Command::ReserveId(ReserveId {
                id: JobId(self.next_id.saturating_sub(rng.below(12))),
                ttr_ms: None,
                session: self.session(rng),
            }),
        }
    }

    fn schedule(&self, rng: &mut Rng, topic: TopicName) -> Command {
        let name = ScheduleName::new(["one", "two"][rng.below(2) as usize]).unwrap();
        let change = |change| ChangeSchedule { topic: topic.clone(), name: name.clone(), change };
        match rng.below(12) {
            0 => Command::GetSchedule(GetSchedule { topic, name }),
            1 => Command::Schedules(Schedules { topic, state: None, cursor: None, limit: 1 }),
            2 => {
                let cancel_job = rng.chance(2);
                Command::RemoveSchedule(RemoveSchedule { topic, name, cancel_job })
            }
            3 => {
                let for_ms = rng.maybe(2, |rng| rng.below(400) as i64);
                Command::ChangeSchedule(change(ScheduleChange::Pause { for_ms }))
            }
            4 => Command::ChangeSchedule(change(ScheduleChange::Resume)),
            5 => Command::ChangeSchedule(change(ScheduleChange::Skip)),
            6 => Command::ChangeSchedule(change(ScheduleChange::Replan)),
            7 => Command::RunSchedule(RunSchedule { topic, name, ticks: None }),
            _ => self.put_schedule(rng, topic, name),
        }
    }

    fn put_schedule(&self, rng: &mut Rng, topic: TopicName, name: ScheduleName) -> Command {
        use Overlap::{Allow, Replace, Skip, Wait};
        let template = Template {
            body: vec![0; rng.below(20) as usize].into(),
            ttr_ms: Some(1 + rng.below(400) as i64),
            attempts_max: Some(rng.below(3) as u32),
            expires_after_ms: rng.maybe(3, |rng| rng.below(400) as i64),
            group: rng.maybe(3, |_| bytes("a")),
            ..Template::default()
        };
        let mut put = PutSchedule::new(topic, name, template);
        match rng.below(4) {
            0 => put.cron = Some("* * * * * *".to_owned()),
            1 => put.gap_ms = Some(100 + rng.below(2) as i64 * 50),
            _ => put.every_ms = Some(100 + rng.below(2) as i64 * 50),
        }
        if put.gap_ms.is_none() {
            let overlap = [Skip, Wait, Allow, Replace][rng.below(4) as usize];
            put.overlap = Some(overlap);
            if matches!(overlap, Wait | Allow) {
                put.catchup = rng.maybe(2, |_| Catchup::All);
            }
        }
        put.late_max_ms = rng.maybe(4, |rng| rng.below(100) as i64);
        put.jitter_ms = rng.maybe(4, |rng| rng.below(200) as i64);
        put.ticks_max = rng.maybe(4, |rng| 1 + rng.below(5));
        put.if_version = rng.maybe(8, |rng| rng.below(3));
        Command::PutSchedule(Box::new(put))
    }

    fn lock(&self, rng: &mut Rng) -> Command {
        let (name, owner) = (self.key(rng), self.key(rng));
        match rng.below(9) {
            0 | 5 => Command::Unlock(Unlock { name, owner }),
            6 => Command::BreakLock(BreakLock { name, fence: None }),
            7 => Command::Locks(Locks { prefix: Bytes::new(), cursor: None, limit: 2 }),
            1 => Command::RenewLock(RenewLock { name, owner, ttl_ms: None }),
            _ => {
                let (ttl_ms, wait_ms) = (1 + rng.below(50) as i64, rng.below(50) as i64);
                Command::Lock(Lock { name, owner, ttl_ms, wait_ms })
            }
        }
    }

    fn look(&self, rng: &mut Rng, name: TopicName, now: Now) -> Command {
        let states = [State::Delayed, State::Ready, State::Leased, State::Dead, State::Done];
        let state = states[rng.below(5) as usize];
        match rng.below(6) {
            0 => Command::Get(vec![self.target(rng)]),
            1 => Command::Peek(Peek { topic: name, state }),
            2 => Command::List(List {
                topic: name,
                state,
                cursor: None,
                limit: 5,
                range: ListRange::default(),
            }),
            3 => Command::Stats(Stats { topic: rng.maybe(2, |_| name) }),
            4 => Command::Topics(Topics { after: None, limit: 2 }),
            _ => {
                let (from_ms, to_ms) = (now.wall_ms - 50, now.wall_ms + 100);
                Command::Forecast(Forecast { topic: name, from_ms, to_ms, step_ms: 7 })
            }
        }
    }

    /// Learns from an answer what later commands may name.
    fn note(&mut self, answer: &Answer) {
        match answer {
            Ok(Reply::Jobs(jobs)) => self.tokens.extend(jobs.iter().map(|job| job.token)),
            Ok(Reply::Session(session)) => self.sessions.push(*session),
            Ok(Reply::Chain(reply)) => {
                for put in &reply.puts {
                    self.next_id = self.next_id.max(put.id.0 + 1);
                }
            }
            Ok(Reply::Put(replies)) => {
                for reply in replies.iter().flatten() {
                    self.next_id = self.next_id.max(reply.id.0 + 1);
                }
            }
            _ => {}
        }
    }
}

/// A machine, and what a disk would have of it.
struct Twin {
    machine: Machine<MemoryTimeline>,
    checkpoint: (Image, MemoryTimeline),
    facts: Vec<Fact>,
}

impl Twin {
    fn new(now: Now) -> Twin {
        let machine = Machine::new(MemoryTimeline::new());
        let checkpoint = (image(&machine, now), MemoryTimeline::new());
        Twin { machine, checkpoint, facts: Vec::new() }
    }

    /// What it said, of which the facts are kept. Two things are left out because they depend on
    /// what a timeline remembers: when an answer may leave (which batch put a job), and a hold that
    /// is over (it may have been swept).
    fn take(&mut self, now: Now, out: &mut Output) -> (Vec<Fact>, Vec<(Ticket, Answer)>) {
        self.facts.extend(out.facts.iter().cloned());
        let answers = out.answers.drain(..).map(|(ticket, answer, _)| (ticket, answer));
        let mut facts = std::mem::take(&mut out.facts);
        for fact in &mut facts {
            if let Fact::Put { left, .. } = fact {
                *left =
                    left.filter(|left| left.class != Class::HOLD || left.due_at > now.steady_ms);
            }
        }
        (facts, answers.collect())
    }

    fn rebuild_by_images(&mut self, now: Now) {
        let image = image(&self.machine, now);
        self.machine = restored(&image, self.machine.timeline().clone());
    }

    fn rebuild_by_facts(&mut self) {
        let (image, timeline) = &self.checkpoint;
        self.machine = restored(image, timeline.clone());
        self.facts.drain(..).for_each(|fact| self.machine.replay(fact));
    }

    fn checkpoint(&mut self, now: Now) {
        self.checkpoint = (image(&self.machine, now), self.machine.timeline().clone());
        self.facts.clear();
    }
}

fn history(seed: u64, steps: u64) {
    let mut rng = Rng(seed);
    let mut now = Now { steady_ms: STEADY_0, wall_ms: WALL_0, fraction: false };
    let mut twins = [Twin::new(now), Twin::new(now)];
    let mut seen = Seen::default();
    let (mut epoch, mut out) = (1, Output::default());
    let holders: [Option<HolderId>; 3] = [None, HolderId::next(), HolderId::next()];
    let mut model = HolderModel::default();
    for step in 1..=steps {
        let long_ms = if rng.chance(40) { 700 } else { 30 };
        let passed_ms = [0, 0, 1, rng.below(long_ms)][rng.below(4) as usize];
        now.steady_ms += passed_ms;
        now.wall_ms += passed_ms + if rng.chance(50) { rng.below(30) } else { 0 };
        now.fraction = rng.chance(2);
        if rng.chance(60) {
            epoch += 1;
            restart(&mut twins, epoch, now, step);
            seen.sessions.clear();
            model = HolderModel::default();
        }
        let command = seen.command(&mut rng, now);
        let (ticket, sync) = (Ticket(step), rng.chance(3));
        seen.tickets.push(ticket);
        let holder = holders[rng.below(3) as usize];
        model.ask(ticket, &command, holder);
        let said = twins.each_mut().map(|twin| {
            let machine = &mut twin.machine;
            machine.set_batch(step);
            let request = Request { holder, ..Request::new(ticket, command.clone()) };
            machine.step(now, request, &mut out).unwrap();
            if sync {
                machine.timeline_mut().set_synced(step);
                machine.synced();
            }
            machine.tick(now, &mut out).unwrap();
            machine.continue_long(now, &mut out).unwrap();
            counts_add_up(machine);
            deadlines_are_there(machine);
            twin.take(now, &mut out)
        });
        assert_eq!(said[0], said[1], "step {step}: {command:?}");
        assert_eq!(twins[0].machine.next_wake(now), twins[1].machine.next_wake(now));
        model.note_facts(&said[0].0);
        said[0].1.iter().for_each(|(ticket, answer)| {
            seen.note(answer);
            model.note(*ticket, answer);
        });
        twins.iter().for_each(|twin| model.compare(&twin.machine));
    }
}

fn restart(twins: &mut [Twin; 2], epoch: u32, now: Now, step: u64) {
    twins[0].rebuild_by_images(now);
    twins[1].rebuild_by_facts();
    let [first, second] = twins.each_ref().map(|twin| image(&twin.machine, now).without_hints());
    assert_eq!(first, second, "before step {step}");
    let said = twins.each_mut().map(|twin| {
        let mut out = Output::default();
        twin.machine.set_epoch(epoch);
        // What was read back is durable.
        twin.machine.timeline_mut().set_synced(step);
        twin.machine.recovered(now, &mut out).unwrap();
        twin.checkpoint(now);
        (out.facts, out.answers)
    });
    assert_eq!(said[0], said[1], "recovery before step {step}");
}

#[test]
fn random_histories_survive_restarts() {
    let seed = std::env::var("DORMOUSE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = match seed {
        Some(seed) => seed..seed + 1,
        None => 0..120,
    };
    for seed in seeds {
        let run = std::panic::catch_unwind(|| history(seed, 600));
        if let Err(panic) = run {
            println!("failed with DORMOUSE_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
