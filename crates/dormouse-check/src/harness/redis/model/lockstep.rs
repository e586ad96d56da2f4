//! One history in lockstep: the same commands to the rules and to Redis, one clock for both, every
//! answer compared before the next command.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use dormouse_core::backend::{Answer, Ticket};
use dormouse_core::backoff::Backoff;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::Token;
use dormouse_core::op::*;
use dormouse_core::topic::{Settings, TopicName};

use crate::faults::lossy::Loss;
use crate::generate::command::CommandSource;
use crate::generate::op::{Kind, Op};
use crate::generate::profile::REDIS_VOCABULARY;
use crate::harness::redis::model::parked::Parked;
use crate::harness::redis::model::system::{Rig, SERVERS, START_MS, Subject};
use crate::oracle::answers::judge;
use crate::oracle::clocked::Oracle;
use crate::oracle::names::Names;

/// A request that is woken is answered sooner, even over a connection that must be opened again;
/// one that is not, only by the timed poll of its server, every few seconds.
const SOON: Duration = Duration::from_secs(2);
/// On a busy machine some may be late.
const LATE_MAX: u32 = 3;

/// See the module.
pub struct World<'a> {
    pub(crate) rig: &'a Rig,
    pub(crate) subject: Subject,
    pub(crate) oracle: Oracle,
    pub(crate) names: Names,
    pub(crate) source: CommandSource,
    pub(crate) parked: Parked,
    /// How many servers are used.
    servers: usize,
    /// The server that a session or a ticket belongs to.
    sessions: HashMap<SessionId, usize>,
    tickets: HashMap<Ticket, usize>,
    /// The topics that have, or had, a schedule.
    pub(crate) scheduled: BTreeSet<TopicName>,
    /// The topics that have, or had, limits.
    pub(crate) limited: BTreeSet<TopicName>,
    /// Answers that took longer than they should.
    late: u32,
    /// The history so far, for people.
    pub log: Vec<String>,
    /// Commands that both did.
    pub steps: u64,
}

impl<'a> World<'a> {
    /// An empty Redis with servers on it, and rules that know of nothing.
    pub fn new(rig: &'a Rig, servers: usize) -> World<'a> {
        World {
            rig,
            subject: Subject::new(rig, 1),
            oracle: Oracle::new(START_MS),
            names: Names::default(),
            source: CommandSource::new(&REDIS_VOCABULARY),
            parked: Parked::default(),
            servers: servers.clamp(1, SERVERS),
            sessions: HashMap::new(),
            tickets: HashMap::new(),
            scheduled: BTreeSet::new(),
            limited: BTreeSet::new(),
            late: 0,
            log: Vec::new(),
            steps: 0,
        }
    }

    /// The time of both clocks.
    pub fn now_ms(&self) -> u64 {
        self.oracle.now().wall_ms
    }

    /// The token that was given last, in the numbers of the rules.
    pub fn last_token(&self) -> Option<Token> {
        self.source.tokens.last().copied()
    }

    /// Does one op.
    pub(crate) fn run(&mut self, op: &Op) -> Result<(), String> {
        let [a, b, ..] = op.args;
        let server = usize::from(op.args[5]) % self.servers;
        match op.kind {
            Kind::Advance => self.advance(u64::from(a % 14)),
            Kind::AdvanceTo => self.advance(self.until_some_instant(a, b)),
            Kind::AdvanceFar => self.advance(u64::from(a) * [1, 20, 500][usize::from(b % 3)]),
            Kind::ScriptFlush => self.upset("SCRIPT FLUSH", &["SCRIPT", "FLUSH"]),
            Kind::KillClients => {
                let kind = ["normal", "pubsub"][usize::from(a % 2)];
                self.upset(kind, &["CLIENT", "KILL", "TYPE", kind])
            }
            Kind::LoseAnswer => self.lose(Loss::Answer),
            Kind::LoseRequest => self.lose(Loss::Request),
            Kind::Reopen => self.reopen(server),
            Kind::Batch => self.batch(server, op),
            _ => match self.source.command(op, self.oracle.now()) {
                Some(command) => self.command(server, command),
                None => Ok(()),
            },
        }
    }

    fn upset(&mut self, what: &str, words: &[&str]) -> Result<(), String> {
        self.log.push(format!("upset: {what}"));
        self.rig.redis.must(words);
        Ok(())
    }

    fn lose(&mut self, loss: Loss) -> Result<(), String> {
        self.log.push(format!("lose: {loss:?}"));
        self.rig.lose(loss);
        Ok(())
    }

    /// Another server takes the place of this one. Sessions end with it and tell nobody: their
    /// leases go on.
    fn reopen(&mut self, server: usize) -> Result<(), String> {
        if self.parked.server() == Some(server) {
            return Ok(());
        }
        self.log.push(format!("reopen {server}"));
        self.rig.lose(Loss::None);
        self.subject.reopen(server);
        self.sessions.retain(|_, home| *home != server);
        self.source.sessions.retain(|session| self.sessions.contains_key(session));
        Ok(())
    }

    /// How long until a little before, at, or after an instant that an answer spoke of.
    fn until_some_instant(&self, a: u16, b: u16) -> u64 {
        let now_ms = self.now_ms();
        let ahead = self.source.instants.iter().filter(|at| **at > now_ms);
        let mut ahead: Vec<u64> = ahead.map(|at| at - now_ms).collect();
        ahead.sort_unstable();
        ahead.dedup();
        // Mostly one of the next: what comes later is met later.
        ahead.truncate(if b % 16 == 0 { usize::MAX } else { 4 });
        if ahead.is_empty() {
            return 1;
        }
        let ms = ahead[usize::from(a) % ahead.len()];
        [ms, ms, ms, ms.saturating_sub(1), ms + 1][usize::from(b / 16 % 5)]
    }

    /// Time passes for both.
    pub fn advance(&mut self, ms: u64) -> Result<(), String> {
        self.log.push(format!("advance {ms} ms"));
        let until_ms = self.now_ms() + self.bounded_ms(ms);
        while self.now_ms() < until_ms {
            let next_ms = self.oracle.next_instant().unwrap_or(until_ms).min(until_ms);
            self.leave_races(next_ms)?;
            self.oracle.advance(until_ms)?;
            // A waiting request sees every instant; else Redis need not.
            let sees_all = !self.parked.is_empty() || !self.scheduled.is_empty();
            if sees_all || self.now_ms() == until_ms {
                let behind_ms = self.now_ms() - self.subject.clock.now_ms();
                self.subject.clock.advance(behind_ms);
                self.settle()?;
                self.settle_schedules()?;
            }
        }
        Ok(())
    }

    /// One command to both, or what can be compared of it.
    pub fn command(&mut self, server: usize, mut command: Command) -> Result<(), String> {
        let server = server % self.servers;
        if !self.fit_to_schedules(server, &mut command)? {
            return Ok(());
        }
        self.fit_to_waiting(&mut command)?;
        let server = self.server_for(server, &mut command);
        if let Command::SetTopic(set) = &mut command {
            set.settings.dead_topic = None;
            if has_limits(&set.settings) {
                self.limited.insert(set.topic.clone());
                self.withdraw_several()?;
            }
            // Redis applies dead_ttl and dead_max when somebody looks: before they change.
            let stats = Stats { topic: Some(set.topic.clone()) };
            self.subject.ask(server, Command::Stats(stats))?.ok();
        }
        match command {
            Command::List(list) => self.list(server, list),
            Command::Reserve(reserve)
                if (self.servers > 1 || reserve.max > 1)
                    && reserve.topics.len() > 1
                    && self.has_ready(&reserve.topics) =>
            {
                self.reserve_several(server, reserve)
            }
            command => self.ask(server, vec![command]),
        }
    }

    /// Which server a command must go to, because it concerns what only that one knows.
    fn server_for(&self, server: usize, command: &mut Command) -> usize {
        let home = |session: &Option<SessionId>| session.and_then(|id| self.sessions.get(&id));
        match command {
            Command::Reserve(reserve) if reserve.wait_ms > 0 => {
                let at = self.parked.server();
                if let (Some(at), Some(home)) = (at, home(&reserve.session))
                    && at != *home
                {
                    reserve.session = None;
                }
                at.or(home(&reserve.session).copied()).unwrap_or(server)
            }
            Command::Reserve(reserve) => home(&reserve.session).copied().unwrap_or(server),
            Command::ReserveId(reserve) => home(&reserve.session).copied().unwrap_or(server),
            Command::CloseSession(session) => self.sessions.get(session).copied().unwrap_or(server),
            Command::Withdraw(ticket) => self.tickets.get(ticket).copied().unwrap_or(server),
            Command::Lock(_) | Command::Stats(_) | Command::Topics(_) => {
                self.parked.server().unwrap_or(server)
            }
            _ => server,
        }
    }

    /// Some commands as one batch. While somebody waits, it is chance what is given in between.
    fn batch(&mut self, server: usize, op: &Op) -> Result<(), String> {
        if !self.parked.is_empty() {
            return Ok(());
        }
        let kinds = [
            Kind::Put,
            Kind::Reserve,
            Kind::Ack,
            Kind::Nack,
            Kind::Release,
            Kind::Extend,
            Kind::Kill,
            Kind::Cancel,
            Kind::Reschedule,
            Kind::Revive,
            Kind::Kick,
            Kind::ReserveId,
        ];
        let mut commands = Vec::new();
        for i in 0..2 + u32::from(op.args[0] % 4) {
            let args = op.args.map(|arg| arg.rotate_left(3 * i).wrapping_mul(0x9e37));
            let kind = kinds[usize::from(args[4]) % kinds.len()];
            match self.source.command(&Op { kind, args }, self.oracle.now()) {
                Some(Command::Put(mut puts)) => {
                    puts.iter_mut().for_each(|put| self.not_too_late(&mut put.at_ms));
                    commands.push(Command::Put(puts));
                }
                Some(Command::Reschedule(mut moves)) => {
                    moves.iter_mut().for_each(|item| self.not_too_late(&mut item.at_ms));
                    commands.push(Command::Reschedule(moves));
                }
                Some(Command::Reserve(mut reserve)) => {
                    reserve.topics.truncate(1);
                    reserve.session = None;
                    commands.push(Command::Reserve(reserve));
                }
                Some(Command::ReserveId(reserve)) => {
                    commands.push(Command::ReserveId(ReserveId { session: None, ..reserve }));
                }
                other => commands.extend(other),
            }
        }
        if commands.is_empty() { Ok(()) } else { self.ask(server, commands) }
    }

    /// In a batch no job comes when its time is over: to the rules it dies after the batch, on
    /// Redis after the script.
    fn not_too_late(&self, at_ms: &mut Option<i64>) {
        let now_ms = i64::try_from(self.now_ms()).unwrap_or(i64::MAX);
        *at_ms = at_ms.map(|at_ms| at_ms.max(now_ms));
    }

    /// Commands as one batch to both, and all that is answered because of them.
    pub fn ask(&mut self, server: usize, commands: Vec<Command>) -> Result<(), String> {
        for command in &commands {
            self.log.push(format!("server {server}: {}", brief(command)));
        }
        self.steps += commands.len() as u64;
        let to_redis = commands.iter().map(|command| self.names.to_redis(command.clone()));
        let tickets = self.subject.send(server, to_redis.collect());
        for (&ticket, command) in tickets.iter().zip(&commands) {
            let to_rules = self.with_jitter(command.clone());
            self.oracle.step(ticket, to_rules)?;
            self.tickets.insert(ticket, server);
            self.parked.expect(ticket, server, command, self.oracle.now().wall_ms);
        }
        self.oracle.tick()?;
        self.settle()?;
        self.settle_schedules()?;
        let ends_waits =
            |command: &Command| matches!(command, Command::Withdraw(_) | Command::CloseSession(_));
        if commands.iter().any(ends_waits) {
            self.wait_until_still(server)?;
        }
        self.wait_until_parked(server, &tickets)
    }

    /// The backoff of a nack has a jitter by the job's id: the rules get the one of Redis' id.
    fn with_jitter(&mut self, mut command: Command) -> Command {
        if let Command::Nack(nacks) = &mut command {
            for nack in nacks.iter_mut().filter(|nack| nack.delay_ms.is_none()) {
                let Some(view) = self.oracle.view(nack.token.id) else { continue };
                let content = view.job.content;
                let backoff = content.backoff.as_deref().unwrap_or(&Backoff::DEFAULT);
                let id = self.names.job(nack.token.id);
                let ms = backoff.delay_ms(id, view.job.progress.attempts);
                nack.delay_ms = i64::try_from(ms).ok();
            }
        }
        command
    }

    /// Redis answers every request that the rules have answered, and no other.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        for (ticket, rules) in self.oracle.answers() {
            let asked = self.parked.take(ticket);
            let about = |why: String| match &asked {
                Some(command) => format!("{}: {why}", brief(command)),
                None => why,
            };
            let unanswered = |why: String| about(format!("{why}; the rules say {rules:?}"));
            let began = Instant::now();
            let redis = self.subject.take(ticket).map_err(unanswered)?;
            self.late += u32::from(began.elapsed() > SOON);
            if self.late == LATE_MAX {
                return Err(about(format!("the {LATE_MAX}rd answer that comes late: {redis:?}")));
            }
            judge(&mut self.names, asked.as_ref(), &rules, redis).map_err(about)?;
            self.note(ticket, &rules);
        }
        match self.subject.early() {
            Some(early) => Err(format!("the rules let it wait, Redis answers {early}")),
            None => Ok(()),
        }
    }

    pub(crate) fn note(&mut self, ticket: Ticket, answer: &Answer) {
        if let Some(line) = self.log.last_mut() {
            line.push_str(&format!("\n      -> {answer:?}"));
        }
        let Ok(reply) = answer else { return };
        self.source.learn(reply);
        if let (Reply::Session(session), Some(&server)) = (reply, self.tickets.get(&ticket)) {
            self.sessions.insert(*session, server);
        }
    }
}

fn has_limits(settings: &Settings) -> bool {
    let Settings { leased_max, rate, group_leased_max, group_rate, .. } = settings;
    let slots = leased_max.is_some() || group_leased_max.is_some();
    slots || rate.is_some() || group_rate.is_some()
}

/// A command without what it does not say.
pub(crate) fn brief(command: &Command) -> String {
    let text = format!("{command:?}").replace("TopicName", "").replace("JobId", "");
    let parts = text.split(", ").filter(|part| !part.ends_with(": None") || part.contains('{'));
    parts.collect::<Vec<_>>().join(", ")
}
