//! The Redis backend under test: a real server, a way to it that loses things, two Dormouse
//! servers on it and the clock of all three.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::command::Command;
use dormouse_redis::{ManualClock, Options, RedisBackend};

use crate::faults::lossy::{Loss, LossyLink};
use crate::harness::redis::{RedisConfig, RedisServer};

/// Shorter than the interval of the timed polls of all servers.
const TIMEOUT: Duration = Duration::from_secs(4);

/// 2026-01-01T00:00:00Z.
pub(crate) const START_MS: u64 = 1_767_225_600_000;

/// How many Dormouse servers there are.
pub(crate) const SERVERS: usize = 2;

/// A Redis for many histories, one after the other.
pub struct Rig {
    /// Redis.
    pub(crate) redis: RedisServer,
    link: LossyLink,
}

impl Rig {
    /// Starts a server.
    pub fn start() -> Rig {
        let redis = RedisServer::start(RedisConfig::default());
        let link = LossyLink::to(redis.address());
        Rig { redis, link }
    }

    /// The next answer of Redis, or the next request to it, is lost.
    pub(crate) fn lose(&self, loss: Loss) {
        self.link.lose(loss);
    }
}

/// Where answers are kept until they are asked for.
#[derive(Default)]
struct Mailbox {
    answers: Mutex<HashMap<Ticket, Vec<Answer>>>,
    arrived: Condvar,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, HashMap<Ticket, Vec<Answer>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Mailbox {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        let mut kept = self.lock();
        for (ticket, answer) in answers.drain(..) {
            kept.entry(ticket).or_default().push(answer);
        }
        drop(kept);
        self.arrived.notify_all();
    }
}

/// The servers of one history.
pub(crate) struct Subject {
    servers: Vec<Arc<RedisBackend>>,
    mailbox: Arc<Mailbox>,
    partitions: u16,
    url: String,
    /// The clock of all.
    pub(crate) clock: ManualClock,
}

impl Subject {
    /// Empties Redis and starts the servers.
    pub(crate) fn new(rig: &Rig, partitions: u16) -> Subject {
        rig.lose(Loss::None);
        rig.redis.must(&["FLUSHALL"]);
        let clock = ManualClock::new(START_MS);
        let url = rig.link.url();
        let servers = (0..SERVERS).map(|_| open(&url, partitions, &clock)).collect();
        Subject { servers, mailbox: Arc::default(), partitions, url, clock }
    }

    /// Ends a server and starts another in its place.
    pub(crate) fn reopen(&mut self, server: usize) {
        self.servers[server].close();
        self.servers[server] = open(&self.url, self.partitions, &self.clock);
    }

    /// Hands commands to a server as one batch.
    pub(crate) fn send(&self, server: usize, commands: Vec<Command>) -> Vec<Ticket> {
        let tickets: Vec<Ticket> = commands.iter().map(|_| Ticket::next()).collect();
        let requests = tickets.iter().zip(commands);
        let batch = requests.map(|(&ticket, command)| Request::new(ticket, command)).collect();
        let sink: Arc<dyn Sink> = Arc::clone(&self.mailbox) as Arc<dyn Sink>;
        self.servers[server].submit(batch, sink).expect("the backend takes the batch");
        tickets
    }

    /// Waits for an answer.
    pub(crate) fn take(&self, ticket: Ticket) -> Result<Answer, String> {
        let answers = self.mailbox.lock();
        let is_missing = |answers: &mut HashMap<_, _>| !answers.contains_key(&ticket);
        let waited = self.mailbox.arrived.wait_timeout_while(answers, TIMEOUT, is_missing);
        let mut answers = waited.unwrap_or_else(PoisonError::into_inner).0;
        let mut all = answers.remove(&ticket).ok_or("no answer comes")?;
        match (all.pop(), all.is_empty()) {
            (Some(answer), true) => Ok(answer),
            (last, _) => Err(format!("answered twice: {all:?} and {last:?}")),
        }
    }

    /// Hands one command to a server and waits for its answer.
    pub(crate) fn ask(&self, server: usize, command: Command) -> Result<Answer, String> {
        let shown = format!("{command:?}");
        let ticket = self.send(server, vec![command]).remove(0);
        self.take(ticket).map_err(|why| format!("{why} to {shown}"))
    }

    /// An answer to a request that should still wait.
    pub(crate) fn early(&self) -> Option<String> {
        let answers = self.mailbox.lock();
        answers.iter().next().map(|(ticket, answer)| format!("{ticket:?}: {answer:?}"))
    }
}

fn open(url: &str, partitions: u16, clock: &ManualClock) -> Arc<RedisBackend> {
    let clock = Some(clock.clone());
    let options = Options { clock, partitions: Some(partitions), ..Options::default() };
    let opened = RedisBackend::open(url, options);
    Arc::new(opened.unwrap_or_else(|error| panic!("the backend does not open: {error}")))
}
