//! Commands, made of an op's numbers and of what earlier replies named.

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::Map;
use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::{BodyKind, JobId, State, Token};
use dormouse_core::limits::{BATCH_MAX, PAGE_MAX};
use dormouse_core::op::*;
use dormouse_core::time::{Clock, Now};

use super::op::{Kind, Op};
use super::profile::Vocabulary;
use super::schedule;
use super::vocabulary::{backoff, limits, pick, pick_recent, settings, topic};
use crate::oracle::names::{NO_FENCE, NO_JOB};

/// Makes commands; knows the ids, tokens and instants that replies named.
pub(crate) struct CommandSource {
    vocabulary: &'static Vocabulary,
    pub(crate) ids: Vec<JobId>,
    pub(crate) tokens: Vec<Token>,
    pub(crate) sessions: Vec<SessionId>,
    /// Of locks.
    fences: Vec<u64>,
    pub(crate) tickets: Vec<Ticket>,
    /// Instants at which something is to happen, by replies.
    pub(crate) instants: Vec<u64>,
    /// The due times each job has had, where the harness knows them.
    pub(crate) dues: Map<JobId, Vec<(Clock, u64)>>,
    bodies: u64,
}

/// A `delay` or an `at`.
type Due = (Option<i64>, Option<i64>);

impl CommandSource {
    /// A source that knows no job yet.
    pub(crate) fn new(vocabulary: &'static Vocabulary) -> CommandSource {
        CommandSource {
            vocabulary,
            ids: Vec::new(),
            tokens: Vec::new(),
            sessions: Vec::new(),
            fences: Vec::new(),
            tickets: Vec::new(),
            instants: Vec::new(),
            dues: Map::default(),
            bodies: 0,
        }
    }

    fn key(&self, number: u16) -> Bytes {
        let keys = self.vocabulary.keys;
        Bytes::from_static(keys[usize::from(number) % keys.len()].as_bytes())
    }

    fn priority(&self, number: u16) -> Option<u32> {
        pick(self.vocabulary.priorities, number).flatten()
    }

    /// Takes note of a reply.
    pub(crate) fn learn(&mut self, reply: &Reply) {
        match reply {
            Reply::Put(items) => items.iter().flatten().for_each(|put| self.learn_put(put)),
            Reply::Chain(chain) => chain.puts.iter().for_each(|put| self.learn_put(put)),
            Reply::Jobs(jobs) => {
                self.tokens.extend(jobs.iter().map(|job| job.token));
                self.instants.extend(jobs.iter().map(|job| job.expires_at));
            }
            Reply::Extended(items) => {
                self.instants.extend(items.iter().flatten().map(|item| item.expires_at));
            }
            Reply::Changed(items) => {
                self.instants.extend(items.iter().flatten().map(|item| item.due_at));
            }
            Reply::Lock(lock) => {
                self.instants.push(lock.expires_at);
                self.fences.push(lock.fence);
            }
            Reply::Session(session) => self.sessions.push(*session),
            _ => {}
        }
    }

    fn learn_put(&mut self, put: &PutReply) {
        self.instants.push(put.due_at);
        if put.outcome == PutOutcome::Created {
            self.ids.push(put.id);
        }
    }

    fn id(&self, number: u16) -> Option<JobId> {
        let id = pick_recent(&self.ids, number)?;
        Some(if number % 61 == 0 { JobId(id.0 + NO_JOB) } else { id })
    }

    fn token(&self, number: u16) -> Option<Token> {
        let token = pick_recent(&self.tokens, number)?;
        Some(match number % 41 {
            0 => Token { fence: token.fence | NO_FENCE, ..token },
            1 => Token { fence: u64::from(number % 2), ..token },
            2 => Token { fence: u64::MAX, ..token },
            3 => Token { id: self.id(number)?, ..token },
            4 => Token { id: JobId(u64::from(number)), ..token },
            _ => token,
        })
    }

    fn target(&self, a: u16, b: u16) -> Option<Target> {
        if a % 4 == 0 {
            return Some(Target::Key { topic: topic(b), key: self.key(b / 3) });
        }
        self.id(b).map(Target::Id)
    }

    /// Often a due time that the job has had before: only so can weights at one place add up.
    fn due(&self, id: Option<JobId>, a: u16, b: u16, now: Now) -> Due {
        let had = id.and_then(|id| self.dues.get(&id));
        if a % 2 == 0
            && let Some((clock, due_at)) = had.and_then(|had| pick(had, b))
        {
            return again(clock, due_at, now);
        }
        let (a, near) = (a / 2, (now.wall_ms + u64::from(b % 20)) as i64);
        match a % 8 {
            0 | 1 => (None, None),
            2 => (None, Some(near - 8)),
            // An instant at which something else happens.
            3 => (None, pick_recent(&self.instants, b).map(|at| at as i64)),
            4 if a % 64 == 4 => (Some(5), Some(near)),
            4 if a % 64 == 12 => (Some(-1), None),
            4 => (Some(i64::from(b) * 10), None),
            _ => (Some(i64::from(b % 12)), None),
        }
    }

    fn put(&mut self, args: [u16; 6], now: Now) -> Put {
        let [a, b, c, d, e, f] = args;
        self.bodies += 1;
        let mut body = format!("body {}", self.bodies);
        if e % 16 == 0 {
            // Some are longer than a sector, some fill a block.
            body.push_str(&"-".repeat(usize::from(e / 16 % 3_000)));
        }
        let mut put = Put::new(topic(a), body);
        put.body_kind = [BodyKind::Bytes, BodyKind::Text, BodyKind::Json][usize::from(e % 3)];
        put.priority = self.priority(a / 3);
        (put.delay_ms, put.at_ms) = self.due(self.id(c), c, d, now);
        if b % 2 == 0 {
            put.key = Some(self.key(b / 2));
            put.on_conflict = [
                OnConflict::Keep,
                OnConflict::Reject,
                OnConflict::Replace,
                OnConflict::Replace,
                OnConflict::Earliest,
                OnConflict::Latest,
            ][usize::from(b / 6 % 6)];
            put.key_ttl_ms = (b / 36 % 2 == 0).then(|| i64::from(b / 72 % 12));
        }
        put.ttr_ms = (e / 3 % 8 != 0).then(|| i64::from(e / 24 % 40));
        put.attempts_max = (f % 4 != 0).then(|| u32::from(f / 4 % 4));
        put.backoff = backoff(f / 16);
        let chosen = a.rotate_left(3) ^ c.rotate_left(7) ^ f;
        if self.vocabulary.ends && chosen % 4 == 0 {
            put.expires_after_ms = Some(i64::from(chosen / 4 % 16));
        }
        if self.vocabulary.limits && chosen / 64 % 3 != 0 {
            put.group = Some(Bytes::from_static([&b"g"[..], b"h"][usize::from(chosen / 192 % 2)]));
        }
        if d / 20 % 4 == 0 {
            let header = ("h".to_owned(), "v".repeat(usize::from(d / 80 % 8)));
            put.headers = Some(Arc::new(vec![header]));
        }
        put
    }

    /// The command of an op; `None` = it is none, or there is nothing to ask for.
    pub(crate) fn command(&mut self, op: &Op, now: Now) -> Option<Command> {
        let args = |i: u16| op.args.map(|arg| arg.rotate_left(u32::from(5 * i)));
        let [a, b, ..] = op.args;
        // Some of a kind at once; more than that many items happen to be alike.
        let count = if a % 8 == 0 { 2 + b % 3 } else { 1 };
        let each = || (0..count).map(args);
        Some(match op.kind {
            Kind::Put => Command::Put(each().map(|args| self.put(args, now)).collect()),
            Kind::Reserve | Kind::ReserveWait => self.reserve(op),
            Kind::ReserveId => {
                let ttr_ms = (op.args[2] % 3 != 0).then(|| i64::from(op.args[2] % 20));
                let session = self.session(op.args[3]);
                Command::ReserveId(ReserveId { id: self.id(b)?, ttr_ms, session })
            }
            Kind::Ack => {
                Command::Ack(each().map(|[_, b, ..]| self.token(b)).collect::<Option<_>>()?)
            }
            Kind::Chain => {
                let token = self.token(b)?;
                Command::Chain(Chain {
                    token,
                    puts: each().map(|args| self.put(args, now)).collect(),
                })
            }
            Kind::Nack => {
                Command::Nack(each().map(|args| self.nack(args, now)).collect::<Option<_>>()?)
            }
            Kind::Release => {
                Command::Release(each().map(|args| self.release(args, now)).collect::<Option<_>>()?)
            }
            Kind::Extend => {
                Command::Extend(each().map(|args| self.extend(args)).collect::<Option<_>>()?)
            }
            Kind::Kill | Kind::KillToken => {
                let by_token = op.kind == Kind::KillToken;
                let kill = |args| self.kill(args, by_token);
                Command::Kill(each().map(kill).collect::<Option<_>>()?)
            }
            Kind::Cancel => Command::Cancel(
                each()
                    .map(|[_, b, c, ..]| {
                        let target = Target::Id(self.id(b)?);
                        Some(Cancel { target, unless_leased: c % 2 == 0 })
                    })
                    .collect::<Option<_>>()?,
            ),
            Kind::CancelKey => Command::Cancel(vec![Cancel {
                target: Target::Key { topic: topic(a), key: self.key(b) },
                unless_leased: op.args[2] % 2 == 0,
            }]),
            Kind::Reschedule => Command::Reschedule(
                each()
                    .map(|[a, b, c, d, ..]| {
                        let (delay_ms, at_ms) = self.due(self.id(b), c, d, now);
                        Some(Reschedule { target: self.target(a, b)?, delay_ms, at_ms })
                    })
                    .collect::<Option<_>>()?,
            ),
            Kind::Revive => {
                Command::Revive(each().map(|[a, b, ..]| self.target(a, b)).collect::<Option<_>>()?)
            }
            Kind::Look => self.look(op, now)?,
            Kind::Schedule => schedule::command(op.args),
            _ => return self.command_on_topic(op),
        })
    }

    fn session(&self, number: u16) -> Option<SessionId> {
        if number % 3 == 0 { pick_recent(&self.sessions, number) } else { None }
    }

    fn nack(&self, [a, b, c, d, e, _]: [u16; 6], now: Now) -> Option<Nack> {
        let token = self.token(b)?;
        Some(Nack {
            token,
            delay_ms: self.due(Some(token.id), c, d, now).0,
            priority: if d % 4 == 0 { self.priority(a) } else { None },
            error: (e % 2 == 0).then(|| Bytes::from(format!("failed {e}"))),
        })
    }

    fn release(&self, [a, b, c, d, ..]: [u16; 6], now: Now) -> Option<Release> {
        let token = self.token(b)?;
        Some(Release {
            token,
            delay_ms: self.due(Some(token.id), c, d, now).0,
            priority: if d % 4 == 0 { self.priority(a) } else { None },
        })
    }

    fn extend(&self, [_, b, c, ..]: [u16; 6]) -> Option<Extend> {
        Some(Extend { token: self.token(b)?, ttr_ms: (c % 2 == 0).then(|| i64::from(c / 2 % 30)) })
    }

    fn kill(&self, [a, b, c, d, e, _]: [u16; 6], by_token: bool) -> Option<Kill> {
        let target = if by_token {
            KillTarget::Token(self.token(b)?)
        } else {
            KillTarget::Resting(self.target(c, b)?)
        };
        let error = (e % 2 == 0).then(|| Bytes::from(format!("killed {e}")));
        Some(Kill { target, error, priority: if d % 4 == 0 { self.priority(a) } else { None } })
    }

    fn reserve(&self, op: &Op) -> Command {
        let [a, b, c, d, ..] = op.args;
        let wait = op.kind == Kind::ReserveWait;
        let topics = match a % 4 {
            0 => vec![topic(0), topic(1), topic(2)],
            1 => vec![topic(b), topic(b.wrapping_add(1))],
            _ => vec![topic(b)],
        };
        Command::Reserve(Reserve {
            topics,
            max: usize::from(1 + c % 4),
            wait_ms: if wait { i64::from(1 + c / 4 % 40) } else { 0 },
            ttr_ms: (c / 160 % 2 == 0).then(|| i64::from(1 + c / 320 % 20)),
            session: self.session(d),
        })
    }

    fn set_topic(&self, a: u16, b: u16, c: u16) -> SetTopic {
        let settings = settings(b, c, self.vocabulary.ends);
        let settings = if self.vocabulary.limits { limits(settings, b, c) } else { settings };
        SetTopic { topic: topic(a), settings }
    }

    /// Commands that name no job.
    fn command_on_topic(&self, op: &Op) -> Option<Command> {
        let [a, b, c, d, ..] = op.args;
        let owner = || Bytes::from_static([b"x".as_slice(), b"y", b"z"][usize::from(b % 3)]);
        Some(match op.kind {
            Kind::ReviveTopic => {
                Command::ReviveTopic(ReviveTopic { topic: topic(a), max: usize::from(b % 4) })
            }
            Kind::Kick => Command::Kick(Kick { topic: topic(a), max: usize::from(b % 4) }),
            // None or all: backends give them back in an order of their own.
            Kind::ReleaseTopic => {
                let max = if b % 8 == 0 { 0 } else { BATCH_MAX };
                Command::ReleaseTopic(ReleaseTopic { topic: topic(a), max })
            }
            Kind::Purge => Command::Purge(topic(a).into()),
            Kind::Pause => Command::Pause(PauseTopic {
                topic: topic(a),
                for_ms: (b % 3 != 0).then(|| i64::from(b % 40)),
            }),
            Kind::Resume => Command::Resume(topic(a)),
            Kind::SetTopic => Command::from(self.set_topic(a, b, c)),
            Kind::OpenSession => Command::OpenSession,
            Kind::CloseSession => Command::CloseSession(pick_recent(&self.sessions, a)?),
            Kind::Lock => Command::Lock(Lock {
                name: self.key(a % 2),
                owner: owner(),
                ttl_ms: i64::from(1 + c % 50),
                wait_ms: if d % 2 == 0 { 0 } else { i64::from(d % 20) },
            }),
            Kind::RenewLock => Command::RenewLock(RenewLock {
                name: self.key(a % 2),
                owner: owner(),
                ttl_ms: (c % 2 == 0).then(|| i64::from(1 + c % 50)),
            }),
            Kind::Unlock => Command::Unlock(Unlock { name: self.key(a % 2), owner: owner() }),
            Kind::BreakLock => Command::BreakLock(BreakLock {
                name: self.key(a % 2),
                fence: if c % 2 == 0 { pick_recent(&self.fences, d) } else { None },
            }),
            Kind::Withdraw => Command::Withdraw(pick_recent(&self.tickets, a)?),
            _ => return None,
        })
    }

    fn look(&self, op: &Op, now: Now) -> Option<Command> {
        let [a, b, c, d, e, _] = op.args;
        let states = [State::Delayed, State::Ready, State::Leased, State::Dead, State::Done];
        let known = if self.vocabulary.ends { states.len() } else { states.len() - 1 };
        let state = states[usize::from(c) % known];
        Some(match a % 9 {
            0 | 1 => {
                let several = [(d, b), (e, c), (b, d)];
                let some = several.iter().take(usize::from(1 + e % 3));
                Command::Get(some.map(|&(a, b)| self.target(a, b)).collect::<Option<_>>()?)
            }
            7 => {
                let ids = [b, c, d].into_iter().take(usize::from(1 + e % 3));
                Command::TopicsOf(ids.map(|number| self.id(number)).collect::<Option<_>>()?)
            }
            8 => {
                let prefix = if b % 2 == 0 { Bytes::new() } else { self.key(c) };
                Command::Locks(Locks { prefix, cursor: None, limit: PAGE_MAX })
            }
            2 => Command::Peek(Peek { topic: topic(b), state }),
            3 => {
                let limit = usize::from(1 + d % 8);
                Command::List(List {
                    topic: topic(b),
                    state,
                    cursor: None,
                    limit,
                    range: ListRange::default(),
                })
            }
            4 => Command::Stats(Stats { topic: (b % 4 != 0).then(|| topic(b / 4)) }),
            5 => Command::Topics(Topics {
                after: (b % 2 == 0).then(|| topic(b / 2)),
                limit: usize::from(1 + c % 4),
            }),
            _ => Command::Forecast(Forecast {
                topic: topic(b),
                from_ms: now.wall_ms.saturating_sub(u64::from(c % 10)),
                to_ms: now.wall_ms + u64::from(e % 40),
                step_ms: u64::from(1 + d % 6),
            }),
        })
    }
}

/// The request that leads to this due time again.
fn again(clock: Clock, due_at: u64, now: Now) -> Due {
    match clock {
        Clock::Wall => (None, Some(due_at as i64)),
        Clock::Steady => {
            let rounded_up = u64::from(now.fraction && due_at > now.steady_ms);
            let delay_ms = due_at.saturating_sub(now.steady_ms);
            (Some(delay_ms.saturating_sub(rounded_up) as i64), None)
        }
    }
}
