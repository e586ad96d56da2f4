//! What the client knows, under one lock: connections, and calls without an answer. It does no
//! input or output: what is to be done after the lock is in [`Todo`].

mod call;
mod conn;
mod lost;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dormouse_core::backend::{Answer, Load, ReplyGroups, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};

pub(crate) use call::{Call, Sent};
pub(crate) use conn::{Conn, ConnId, Portion};
pub(crate) use lost::{Loss, closed};

use crate::limits::{STABLE_MS_MIN, WAIT_IDLE_MS};
use crate::options::{ConnectOptions, bounded};
use crate::stream::Stream;
use call::{nothing, wait_of};

/// How far the client is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Open,
    /// Takes no more, and waits for answers.
    Closing,
    /// The threads end.
    Closed,
}

/// A connection that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Commands,
    Wait,
}

/// What to do once the lock is given back.
#[derive(Default)]
pub(crate) struct Todo {
    pub(crate) answers: ReplyGroups,
    /// Connections that have something to write.
    pub(crate) flush: Vec<ConnId>,
    /// Streams to end for good.
    pub(crate) close: Vec<Arc<Stream>>,
    /// Streams whose sending side is to be ended: the server answers what waits there, and closes.
    pub(crate) finish: Vec<Arc<Stream>>,
    /// A connection may be missing.
    pub(crate) connect: bool,
    /// The reader has to look at the connections again.
    pub(crate) wake: bool,
}

impl Todo {
    fn answer(&mut self, call: &Call, answer: Answer) {
        self.answers.push(&call.sink, call.ticket, answer);
    }

    fn flush(&mut self, id: ConnId) {
        if !self.flush.contains(&id) {
            self.flush.push(id);
        }
    }
}

/// See the module.
pub(crate) struct State {
    pub(crate) phase: Phase,
    pub(crate) load: Load,
    conns: HashMap<ConnId, Conn>,
    next_id: u64,
    /// The connection for commands that do not wait.
    commands: Option<ConnId>,
    /// Calls for it while there is none.
    queued: VecDeque<Call>,
    /// Requests that wait and have no connection yet.
    queued_waits: VecDeque<Call>,
    /// Connections for waits that have none, and since when.
    idle: Vec<(ConnId, Instant)>,
    /// Connections for waits.
    waits: usize,
    /// Requests that wait at a server.
    parked: HashMap<Ticket, ConnId>,
    /// The URL that worked last.
    pub(crate) preferred: usize,
    /// When a connection broke last that was opened a moment before.
    unstable_at: Option<Instant>,
    /// Why the last attempt to connect failed.
    trouble: Option<Error>,
    /// All servers, for texts.
    urls: String,
    /// When the reader looks at the clock by itself; `None` = never.
    reader_wakes_at: Option<Instant>,
    waits_max: usize,
    answer_timeout: Duration,
    repeat_for: Duration,
}

impl State {
    pub(crate) fn new(options: &ConnectOptions, urls: String) -> State {
        State {
            phase: Phase::Open,
            load: Load::default(),
            conns: HashMap::new(),
            next_id: 0,
            commands: None,
            queued: VecDeque::new(),
            queued_waits: VecDeque::new(),
            idle: Vec::new(),
            waits: 0,
            parked: HashMap::new(),
            preferred: 0,
            unstable_at: None,
            trouble: None,
            urls,
            reader_wakes_at: None,
            waits_max: options.waits_max.max(1),
            answer_timeout: bounded(options.answer_timeout),
            repeat_for: bounded(options.repeat_for),
        }
    }

    pub(crate) fn conn(&mut self, id: ConnId) -> Option<&mut Conn> {
        self.conns.get_mut(&id)
    }

    /// All connections, to wait for their sockets.
    pub(crate) fn conns(&self) -> impl Iterator<Item = (ConnId, &Conn)> {
        self.conns.iter().map(|(id, conn)| (*id, conn))
    }

    /// Takes a request. Its load was admitted.
    pub(crate) fn take(
        &mut self,
        request: Request,
        sink: &Arc<dyn Sink>,
        now: Instant,
        todo: &mut Todo,
    ) {
        let Request { ticket, command, .. } = request;
        if let Command::Withdraw(waiting) = command {
            return self.withdraw(waiting, (ticket, Arc::clone(sink)), now, todo);
        }
        let wait = wait_of(&command);
        let mut call = Call::new(ticket, command, sink);
        self.load.requests += call.load.requests;
        self.load.bytes += call.load.bytes;
        if wait.is_zero() {
            return self.send(call, now, todo);
        }
        // It has time: it may find a server again as long as it was to wait anyway.
        call.until = Some(now + wait + self.repeat_for);
        self.begin_wait(call, now, todo);
    }

    /// Sends a command, or keeps it until there is a connection.
    fn send(&mut self, mut call: Call, now: Instant, todo: &mut Todo) {
        match self.commands {
            Some(id) => self.append(id, call, now, todo),
            None => {
                call.until.get_or_insert(now + self.repeat_for);
                self.queued.push_back(call);
                (todo.connect, todo.wake) = (true, true);
            }
        }
    }

    /// Sends a request that waits, or keeps it until there is a connection.
    fn begin_wait(&mut self, call: Call, now: Instant, todo: &mut Todo) {
        if let Some((id, _)) = self.idle.pop() {
            return self.append(id, call, now, todo);
        }
        let waiting = self.parked.len() + self.queued_waits.len();
        if waiting >= self.waits_max {
            let text = format!(
                "{waiting} reserves and locks wait already, the limit of this client; ask without \
                 a wait, or raise waits_max"
            );
            return self.answer(&call, Err(Error::new(Code::Busy, text)), todo);
        }
        self.queued_waits.push_back(call);
        (todo.connect, todo.wake) = (true, true);
    }

    fn append(&mut self, id: ConnId, mut call: Call, now: Instant, todo: &mut Todo) {
        // A connection is looked up by those who know that it is there.
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let (ticket, is_for_waits) = (call.ticket, conn.is_for_waits);
        if !call.is_repeat && !is_for_waits {
            call.until = None;
        }
        match conn.append(call, now) {
            None => {
                if is_for_waits {
                    self.parked.insert(ticket, id);
                }
                todo.flush(id);
                // Most answers come long before: the reader is only woken to keep the time if it
                // would not wake in time by itself.
                let overdue_at = conn.overdue_at(self.answer_timeout);
                todo.wake |= self.reader_wakes_at.is_none_or(|at| Some(at) > overdue_at);
            }
            Some((call, answer)) => {
                if is_for_waits {
                    self.idle.push((id, now));
                }
                self.answer(&call, answer, todo);
            }
        }
    }

    /// The last of a call.
    fn answer(&mut self, call: &Call, answer: Answer, todo: &mut Todo) {
        self.load -= call.load;
        todo.answer(call, answer);
    }

    /// Ends a wait: its server answers it now, with what it has. The withdrawal is answered after
    /// it, so that whoever hears of that finds the wait gone.
    fn withdraw(
        &mut self,
        waiting: Ticket,
        by: (Ticket, Arc<dyn Sink>),
        now: Instant,
        todo: &mut Todo,
    ) {
        let queued = self.queued_waits.iter().position(|call| call.ticket == waiting);
        if let Some(call) = queued.and_then(|index| self.queued_waits.remove(index)) {
            self.answer(&call, nothing(&call.command), todo);
        } else if let Some(id) = self.parked.get(&waiting)
            && let Some(conn) = self.conns.get_mut(id)
            && conn.withdrawn_by.is_none()
        {
            if let Some(sent) = conn.sent.front_mut() {
                (sent.sent_at, sent.wait) = (now, Duration::ZERO);
            }
            conn.withdrawn_by = Some(by);
            todo.finish.push(Arc::clone(&conn.stream));
            todo.wake = true;
            return;
        }
        todo.answers.push(&by.1, by.0, Ok(Reply::Done));
    }

    /// Takes the calls off a connection to which these replies belong. The first `owed` are for a
    /// call that was taken off before.
    pub(crate) fn take_answered(
        &mut self,
        id: ConnId,
        replies: usize,
        owed: usize,
        now: Instant,
        todo: &mut Todo,
    ) -> Vec<Sent> {
        let Some(conn) = self.conns.get_mut(&id) else { return Vec::new() };
        conn.heard_at = now;
        let mut answered = Vec::new();
        conn.is_partly_answered = owed > replies;
        let mut replies = replies.saturating_sub(owed);
        while replies > 0
            && let Some(sent) = conn.sent.pop_front()
        {
            let missing = sent.reader.missing();
            conn.is_partly_answered = replies < missing;
            replies = replies.saturating_sub(missing);
            self.load -= sent.call.load;
            answered.push(sent);
        }
        if conn.is_for_waits && !answered.is_empty() {
            self.wait_ended(id, &answered, now, todo);
        }
        answered
    }

    /// A connection for waits has its answer: the next request has it, or none.
    fn wait_ended(&mut self, id: ConnId, answered: &[Sent], now: Instant, todo: &mut Todo) {
        for sent in answered {
            self.parked.remove(&sent.call.ticket);
        }
        let is_withdrawn = self.conns.get(&id).is_some_and(|conn| conn.withdrawn_by.is_some());
        if is_withdrawn {
            // Its sending side is ended. Whoever reads the answers delivers these behind them.
            let conn = self.conns.remove(&id);
            self.waits -= 1;
            if let Some(Conn { stream, withdrawn_by: Some((ticket, sink)), .. }) = conn {
                todo.close.push(stream);
                todo.answers.push(&sink, ticket, Ok(Reply::Done));
            }
            todo.connect |= self.need().is_some();
            return;
        }
        match self.queued_waits.pop_front() {
            Some(call) => self.append(id, call, now, todo),
            None => self.idle.push((id, now)),
        }
    }

    /// How long the reader may sleep; `None` = until it is woken. After a time with answers it
    /// sleeps no longer than one may take, so that the next command need not wake it.
    pub(crate) fn reader_sleep(&mut self, now: Instant, was_busy: bool) -> Option<Duration> {
        let soon = was_busy.then(|| now + self.answer_timeout);
        self.reader_wakes_at = self.next_time().into_iter().chain(soon).min();
        self.reader_wakes_at.map(|at| at.saturating_duration_since(now))
    }

    /// The connection that is needed most.
    pub(crate) fn need(&self) -> Option<Need> {
        if self.commands.is_none() && !self.queued.is_empty() {
            Some(Need::Commands)
        } else if !self.queued_waits.is_empty() && self.waits < self.waits_max {
            Some(Need::Wait)
        } else {
            None
        }
    }

    /// Whether connections break as soon as they are open.
    pub(crate) fn is_unstable(&self, now: Instant) -> bool {
        let stable = Duration::from_millis(STABLE_MS_MIN);
        self.unstable_at.is_some_and(|at| now.duration_since(at) < stable)
    }

    /// A connection is open: what was kept for it is sent.
    pub(crate) fn install(
        &mut self,
        need: Need,
        stream: Stream,
        server: usize,
        now: Instant,
        todo: &mut Todo,
    ) {
        self.preferred = server;
        self.trouble = None;
        let conn = Conn::new(stream, server, need == Need::Wait, now);
        if self.phase != Phase::Open {
            todo.close.push(conn.stream);
            return;
        }
        self.next_id += 1;
        let id = ConnId(self.next_id);
        self.conns.insert(id, conn);
        todo.wake = true;
        match need {
            Need::Commands => {
                self.commands = Some(id);
                for call in std::mem::take(&mut self.queued) {
                    self.append(id, call, now, todo);
                }
            }
            Need::Wait => {
                self.waits += 1;
                match self.queued_waits.pop_front() {
                    Some(call) => self.append(id, call, now, todo),
                    None => self.idle.push((id, now)),
                }
            }
        }
    }

    /// Ends connections for waits that were not used for a while.
    fn close_idle(&mut self, now: Instant, todo: &mut Todo) {
        let kept = Duration::from_millis(WAIT_IDLE_MS);
        let is_old = |since: Instant| now.duration_since(since) >= kept;
        for (id, since) in std::mem::take(&mut self.idle) {
            if !is_old(since) {
                self.idle.push((id, since));
            } else if let Some(conn) = self.conns.remove(&id) {
                self.waits -= 1;
                todo.close.push(conn.stream);
            }
        }
    }
}
