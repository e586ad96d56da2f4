//! Commands made of an op's numbers and of what is known.

use bytes::Bytes;
use dormouse_core::command::Command;
use dormouse_core::job::{JobId, State, Token};
use dormouse_core::op::*;
use dormouse_core::time::{Clock, Now};
use dormouse_core::topic::{Settings, TopicName};
use dormouse_core::{Map, backend::Ticket};

use crate::harness::disk::op::{Kind, Op};

/// Topics that a history uses: few, so that things meet.
pub(crate) const TOPICS: [&str; 3] = ["a", "b", "c"];
/// Keys likewise.
pub(crate) const KEYS: [&str; 2] = ["k", "l"];
/// Priorities likewise.
pub(crate) const PRIORITIES: [u32; 3] = [1, 7, 1_024];

/// What has been seen so far.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) ids: Vec<JobId>,
    pub(crate) tokens: Vec<Token>,
    pub(crate) sessions: Vec<SessionId>,
    pub(crate) tickets: Vec<Ticket>,
    /// The due times each job has had.
    pub(crate) dues: Map<JobId, Vec<(Clock, u64)>>,
    pub(crate) bodies: u64,
}

fn pick<T: Copy>(items: &[T], number: u16) -> Option<T> {
    (!items.is_empty()).then(|| items[usize::from(number) % items.len()])
}

/// Mostly one of the last.
fn pick_recent<T: Copy>(items: &[T], number: u16) -> Option<T> {
    let recent = if number % 4 == 0 { items } else { &items[items.len().saturating_sub(12)..] };
    pick(recent, number / 4)
}

fn topic(number: u16) -> TopicName {
    let name = TOPICS[usize::from(number) % TOPICS.len()];
    TopicName::new(name).unwrap_or_else(|_| unreachable!("these names are good"))
}

fn key(number: u16) -> Bytes {
    Bytes::from_static(KEYS[usize::from(number) % KEYS.len()].as_bytes())
}

fn priority(number: u16) -> Option<u32> {
    pick(&PRIORITIES, number)
}

/// A `delay` or an `at`.
type Due = (Option<i64>, Option<i64>);

impl Seen {
    fn id(&self, number: u16) -> Option<JobId> {
        pick_recent(&self.ids, number)
    }

    fn target(&self, op: &Op) -> Option<Target> {
        let [a, b, c, ..] = op.args;
        if a % 5 == 0 {
            return Some(Target::Key { topic: topic(b), key: key(c) });
        }
        self.id(b).map(Target::Id)
    }

    /// Often a due time that the job has had before: only so can weights at one place add up.
    fn due(&self, id: Option<JobId>, a: u16, b: u16, now: Now) -> Due {
        let had = id.and_then(|id| self.dues.get(&id));
        if let Some(had) = had
            && a % 2 == 0
            && let Some((clock, due_at)) = pick(had, b)
        {
            return again(clock, due_at, now);
        }
        match a / 2 % 4 {
            0 => (None, None),
            1 => (None, Some((now.wall_ms + u64::from(b % 16)) as i64 - 8)),
            _ => (Some(i64::from(b % 12)), None),
        }
    }

    fn put(&mut self, args: [u16; 5], now: Now) -> Put {
        let [a, b, c, d, e] = args;
        self.bodies += 1;
        let mut body = format!("body {}", self.bodies);
        if e % 16 == 0 {
            // Some are longer than a sector, some fill a block.
            body.push_str(&"-".repeat(usize::from(e / 16 % 3_000)));
        }
        let mut put = Put::new(topic(a), body);
        put.priority = priority(a / 3);
        (put.delay_ms, put.at_ms) = self.due(self.id(c), c, d, now);
        if b % 2 == 0 {
            put.key = Some(key(b / 2));
            put.on_conflict = [
                OnConflict::Keep,
                OnConflict::Reject,
                OnConflict::Replace,
                OnConflict::Replace,
                OnConflict::Earliest,
                OnConflict::Latest,
            ][usize::from(b / 4 % 6)];
            put.key_ttl_ms = (b / 32 % 2 == 0).then(|| i64::from(b / 64 % 12));
        }
        put.ttr_ms = Some(1 + i64::from(d / 16 % 40));
        put.attempts_max = Some(u32::from(d / 512 % 4));
        put
    }

    /// The command of an op; `None` = it is none, or there is nothing to ask for.
    pub(crate) fn command(&mut self, op: &Op, now: Now) -> Option<Command> {
        let [a, b, c, d, e] = op.args;
        let token = pick_recent(&self.tokens, b);
        let session = |seen: &Seen| if d % 3 == 0 { pick_recent(&seen.sessions, d) } else { None };
        Some(match op.kind {
            Kind::Put => {
                let several = if a % 8 == 0 { 1 + a / 8 % 3 } else { 1 };
                let args = |i: u16| op.args.map(|arg| arg.rotate_left(u32::from(5 * i)));
                Command::Put((0..several).map(|i| self.put(args(i), now)).collect())
            }
            Kind::Reserve | Kind::ReserveWait => self.reserve(op),
            Kind::ReserveId => {
                let ttr_ms = Some(i64::from(1 + c % 20));
                Command::ReserveId(ReserveId { id: self.id(b)?, ttr_ms, session: session(self) })
            }
            Kind::Ack => Command::Ack(vec![token?]),
            Kind::Nack => Command::Nack(vec![Nack {
                token: token?,
                delay_ms: self.due(token.map(|token| token.id), c, d, now).0,
                priority: if a % 4 == 0 { priority(a / 4) } else { None },
                error: (e % 2 == 0).then(|| Bytes::from(format!("failed {e}"))),
            }]),
            Kind::Release => Command::Release(vec![Release {
                token: token?,
                delay_ms: self.due(token.map(|token| token.id), c, d, now).0,
                priority: if a % 4 == 0 { priority(a / 4) } else { None },
            }]),
            Kind::Extend => Command::Extend(vec![Extend {
                token: token?,
                ttr_ms: (c % 2 == 0).then(|| i64::from(1 + c / 2 % 30)),
            }]),
            Kind::KillToken => Command::Kill(vec![Kill {
                target: KillTarget::Token(token?),
                error: None,
                priority: None,
            }]),
            Kind::Kill => Command::Kill(vec![Kill {
                target: KillTarget::Resting(self.target(op)?),
                error: Some(Bytes::from(format!("killed {e}"))),
                priority: if d % 4 == 0 { priority(d / 4) } else { None },
            }]),
            Kind::Cancel => Command::Cancel(vec![Cancel {
                target: Target::Id(self.id(b)?),
                unless_leased: c % 2 == 0,
            }]),
            Kind::CancelKey => Command::Cancel(vec![Cancel {
                target: Target::Key { topic: topic(a), key: key(b) },
                unless_leased: c % 2 == 0,
            }]),
            Kind::Reschedule => {
                let target = self.target(op)?;
                let id = match target {
                    Target::Id(id) => Some(id),
                    Target::Key { .. } => self.id(b),
                };
                let (delay_ms, at_ms) = self.due(id, d, e, now);
                Command::Reschedule(vec![Reschedule { target, delay_ms, at_ms }])
            }
            Kind::Revive => Command::Revive(vec![self.target(op)?]),
            Kind::Look => self.look(op, now)?,
            _ => return self.command_on_topic(op),
        })
    }

    fn reserve(&self, op: &Op) -> Command {
        let [a, b, c, d, _] = op.args;
        let wait = op.kind == Kind::ReserveWait;
        let topics = match a % 4 {
            0 => TOPICS.iter().zip(0..).map(|(_, i)| topic(i)).collect(),
            1 => vec![topic(b), topic(b.wrapping_add(1))],
            _ => vec![topic(b)],
        };
        Command::Reserve(Reserve {
            topics,
            max: usize::from(1 + c % 4),
            wait_ms: if wait { i64::from(1 + c / 4 % 30) } else { 0 },
            ttr_ms: (c / 128 % 2 == 0).then(|| i64::from(1 + c / 256 % 20)),
            session: if d % 3 == 0 { pick_recent(&self.sessions, d) } else { None },
        })
    }

    /// Commands that name no job.
    fn command_on_topic(&self, op: &Op) -> Option<Command> {
        let [a, b, c, d, _] = op.args;
        let owner = || Bytes::from_static([b"x".as_slice(), b"y"][usize::from(b % 2)]);
        Some(match op.kind {
            Kind::ReviveTopic => {
                Command::ReviveTopic(ReviveTopic { topic: topic(a), max: usize::from(b % 4) })
            }
            Kind::Kick => Command::Kick(Kick { topic: topic(a), max: usize::from(b % 4) }),
            Kind::Purge => Command::Purge(topic(a)),
            Kind::Pause => Command::Pause(PauseTopic {
                topic: topic(a),
                for_ms: (b % 3 != 0).then(|| i64::from(b % 40)),
            }),
            Kind::Resume => Command::Resume(topic(a)),
            Kind::SetTopic => {
                Command::SetTopic(SetTopic { topic: topic(a), settings: settings(b) })
            }
            Kind::OpenSession => Command::OpenSession,
            Kind::CloseSession => Command::CloseSession(pick_recent(&self.sessions, a)?),
            Kind::Lock => Command::Lock(Lock {
                name: key(a),
                owner: owner(),
                ttl_ms: i64::from(1 + c % 50),
                wait_ms: if d % 2 == 0 { 0 } else { i64::from(d % 20) },
            }),
            Kind::RenewLock => Command::RenewLock(RenewLock {
                name: key(a),
                owner: owner(),
                ttl_ms: (c % 2 == 0).then(|| i64::from(1 + c % 50)),
            }),
            Kind::Unlock => Command::Unlock(Unlock { name: key(a), owner: owner() }),
            Kind::Withdraw => Command::Withdraw(pick_recent(&self.tickets, a)?),
            _ => return None,
        })
    }

    fn look(&self, op: &Op, now: Now) -> Option<Command> {
        let [a, b, c, d, _] = op.args;
        let states = [State::Delayed, State::Ready, State::Leased, State::Dead];
        let state = states[usize::from(c % 4)];
        Some(match a % 6 {
            0 => Command::Get(vec![self.target(op)?]),
            1 => Command::Peek(Peek { topic: topic(b), state }),
            2 => {
                let limit = usize::from(1 + d % 8);
                Command::List(List { topic: topic(b), state, cursor: None, limit })
            }
            3 => Command::Stats(Stats { topic: (b % 4 != 0).then(|| topic(b / 4)) }),
            4 => Command::Topics(Topics { after: None, limit: 10 }),
            _ => Command::Forecast(Forecast {
                topic: topic(b),
                from_ms: now.wall_ms.saturating_sub(u64::from(c % 10)),
                to_ms: now.wall_ms + 20,
                step_ms: u64::from(1 + d % 6),
            }),
        })
    }
}

/// The request that leads to this due time again, if one does.
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

fn settings(number: u16) -> Settings {
    match number % 5 {
        0 => Settings::default(),
        1 => Settings { dead_max: Some(u64::from(number / 5 % 3)), ..Settings::default() },
        2 => Settings { dead_ttl_ms: Some(u64::from(1 + number / 5 % 30)), ..Settings::default() },
        3 => Settings {
            attempts_max: Some(1),
            dead_max: Some(2),
            dead_ttl_ms: Some(20),
            ..Settings::default()
        },
        _ => Settings { jobs_max: Some(u64::from(3 + number / 5 % 20)), ..Settings::default() },
    }
}
