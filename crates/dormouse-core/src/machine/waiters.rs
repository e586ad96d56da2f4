//! Requests that wait: reserves for a job, locks for their turn.
//!
//! A reserve waits by watching its topics, by name: it creates none. A watched topic is looked at
//! when its next instant has come or when something happened to it, never otherwise, so what
//! waits costs nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::{Machine, Output, When};
use crate::Map;
use crate::backend::Ticket;
use crate::command::Reply;
use crate::holder::HolderId;
use crate::limits::{TICK_MAX, TICK_WAIT_TOPICS, WAITERS_MAX};
use crate::op::SessionId;
use crate::time::Now;
use crate::timeline::Timeline;
use crate::topic::{TopicName, TopicNo};

/// Waiting requests are numbered in the order they came; the first is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WaiterNo(u64);

/// Names a watch on a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WatchNo(u64);

/// The terms of a reserve, besides its topics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReserveTerms {
    pub(crate) max: usize,
    pub(crate) ttr_ms: Option<u64>,
    pub(crate) session: Option<SessionId>,
    pub(crate) holder: Option<HolderId>,
}

/// The terms of a lock.
#[derive(Clone, Debug)]
pub(crate) struct LockTerms {
    pub(crate) name: Bytes,
    pub(crate) owner: Bytes,
    pub(crate) ttl_ms: u64,
    pub(crate) holder: Option<HolderId>,
}

/// A request that waits.
#[derive(Debug)]
pub(crate) enum WaitKind {
    Reserve { terms: ReserveTerms, watches: Vec<WatchNo> },
    Lock(LockTerms),
}

#[derive(Debug)]
pub(super) struct Waiter {
    ticket: Ticket,
    until: u64,
    /// How often it could have had a job, but a topic was not read yet.
    pub(super) tries: u32,
    pub(super) kind: WaitKind,
}

/// A topic that reserves wait on.
#[derive(Debug)]
pub(super) struct Watch {
    name: TopicName,
    pub(super) topic: Option<TopicNo>,
    pub(super) waiters: BTreeSet<WaiterNo>,
    /// When to look again, steady.
    at: Option<u64>,
    pub(super) dirty: bool,
}

/// All requests that wait.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    numbers: u64,
    pub(super) waiting: BTreeMap<WaiterNo, Waiter>,
    by_ticket: Map<Ticket, WaiterNo>,
    ends: BTreeSet<(u64, WaiterNo)>,
    pub(super) watches: Map<WatchNo, Watch>,
    by_name: Map<TopicName, WatchNo>,
    looks: BTreeSet<(u64, WatchNo)>,
    /// Those that are to be looked at before their instant, because the wall clock was stepped.
    stepped: BTreeSet<(u64, WatchNo)>,
    /// Something happened to these.
    pub(super) dirty: VecDeque<WatchNo>,
    /// The due job there is not durable yet.
    pub(super) blocked: Vec<WatchNo>,
    /// Locks by name, their waiters in order.
    pub(crate) locks: Map<Bytes, BTreeSet<WaiterNo>>,
}

impl Waiters {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITERS_MAX
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// A request begins to wait.
    pub(crate) fn park(&mut self, ticket: Ticket, until: u64, kind: WaitKind) -> WaiterNo {
        let no = WaiterNo(self.number());
        match &kind {
            WaitKind::Reserve { watches, .. } => {
                for watch in watches {
                    if let Some(watch) = self.watches.get_mut(watch) {
                        watch.waiters.insert(no);
                    }
                }
            }
            WaitKind::Lock(terms) => {
                self.locks.entry(terms.name.clone()).or_default().insert(no);
            }
        }
        self.by_ticket.insert(ticket, no);
        self.ends.insert((until, no));
        self.waiting.insert(no, Waiter { ticket, until, tries: 0, kind });
        no
    }

    /// The watch on this name, new if need be.
    pub(crate) fn watch(&mut self, name: &TopicName, topic: Option<TopicNo>) -> WatchNo {
        if let Some(&watch) = self.by_name.get(name) {
            return watch;
        }
        // It has not been looked at for this watch, so its next instant is unknown.
        let no = WatchNo(self.number());
        let waiters = BTreeSet::new();
        let watch = Watch { name: name.clone(), topic, waiters, at: None, dirty: false };
        self.watches.insert(no, watch);
        self.by_name.insert(name.clone(), no);
        self.look_at(Some(no));
        no
    }

    /// A topic of this name has come to life: the watch on it, if there is one.
    pub(crate) fn link(&mut self, name: &TopicName, topic: TopicNo) -> Option<WatchNo> {
        let no = *self.by_name.get(name)?;
        self.watches.get_mut(&no)?.topic = Some(topic);
        Some(no)
    }

    /// Something happened to a topic: if it is watched, the next tick looks at it.
    pub(crate) fn look_at(&mut self, watch: Option<WatchNo>) {
        let Some(no) = watch else { return };
        if let Some(watch) = self.watches.get_mut(&no)
            && !watch.dirty
        {
            watch.dirty = true;
            self.dirty.push_back(no);
        }
    }

    /// How many reserves wait on this name.
    pub(crate) fn on(&self, name: &TopicName) -> usize {
        let watch = self.by_name.get(name).and_then(|no| self.watches.get(no));
        watch.map_or(0, |watch| watch.waiters.len())
    }

    pub(crate) fn is_watched(&self, topic: &TopicName) -> bool {
        !self.by_name.is_empty() && self.by_name.contains_key(topic)
    }

    /// Every watch with an instant is to be looked at: the wall clock was stepped.
    pub(super) fn look_at_all(&mut self) {
        if self.stepped.is_empty() {
            std::mem::swap(&mut self.stepped, &mut self.looks);
        } else {
            self.stepped.append(&mut self.looks);
        }
    }

    /// Those whose instant has come are looked at, the first of them if they are very many.
    pub(super) fn look_at_due(&mut self, now: Now) {
        for _ in 0..TICK_MAX {
            let is_due = |at: u64| at <= now.steady_ms;
            let due = self.looks.first().copied().filter(|(at, _)| is_due(*at));
            let Some((at, no)) = due.or_else(|| self.stepped.first().copied()) else { return };
            self.forget_look(at, no);
            if let Some(watch) = self.watches.get_mut(&no) {
                watch.at = None;
            }
            self.look_at(Some(no));
        }
    }

    pub(super) fn plan(&mut self, no: WatchNo, at: Option<u64>) {
        let Some(watch) = self.watches.get_mut(&no) else { return };
        if let Some(before) = std::mem::replace(&mut watch.at, at) {
            self.forget_look(before, no);
        }
        if let Some(at) = at {
            self.looks.insert((at, no));
        }
    }

    fn forget_look(&mut self, at: u64, no: WatchNo) {
        if !self.looks.remove(&(at, no)) {
            self.stepped.remove(&(at, no));
        }
    }

    pub(crate) fn synced(&mut self) {
        for no in std::mem::take(&mut self.blocked) {
            self.look_at(Some(no));
        }
    }

    /// When a tick has something to do here.
    pub(crate) fn next(&self) -> Option<u64> {
        if !self.dirty.is_empty() || !self.stepped.is_empty() {
            return Some(0);
        }
        let look = self.looks.first().map(|&(at, _)| at);
        let end = self.ends.first().map(|&(at, _)| at);
        look.into_iter().chain(end).min()
    }

    /// Whether reserves wait on this name and it has still to be looked at for them.
    pub(crate) fn is_unlooked(&self, name: &TopicName, now: Now) -> bool {
        let no = self.by_name.get(name);
        no.is_some_and(|no| self.on(name) > 0 && self.has_to_be_looked_at(*no, now))
    }

    /// Whether a topic has still to be looked at for those who wait.
    fn has_to_be_looked_at(&self, no: WatchNo, now: Now) -> bool {
        let Some(watch) = self.watches.get(&no) else { return false };
        let is_due = |at: u64| at <= now.steady_ms || self.stepped.contains(&(at, no));
        watch.dirty || watch.at.is_some_and(is_due)
    }

    /// What it costs a tick to serve or to end it.
    pub(crate) fn cost(&self, no: WaiterNo) -> usize {
        match self.waiting.get(&no).map(|waiter| &waiter.kind) {
            Some(WaitKind::Reserve { watches, .. }) => 1 + watches.len() / TICK_WAIT_TOPICS,
            Some(WaitKind::Lock(_)) | None => 1,
        }
    }

    /// Whether a topic it waits on has still to be looked at.
    fn is_unsure(&self, no: WaiterNo, now: Now) -> bool {
        let kind = self.waiting.get(&no).map(|waiter| &waiter.kind);
        let Some(WaitKind::Reserve { watches, .. }) = kind else { return false };
        watches.iter().any(|watch| self.has_to_be_looked_at(*watch, now))
    }

    pub(crate) fn by_ticket(&self, ticket: Ticket) -> Option<WaiterNo> {
        self.by_ticket.get(&ticket).copied()
    }
}

impl<T: Timeline> Machine<T> {
    /// A reserve begins to wait on these topics.
    pub(crate) fn park_reserve(
        &mut self,
        ticket: Ticket,
        until: u64,
        names: &[TopicName],
        terms: ReserveTerms,
    ) {
        let mut watches = Vec::with_capacity(names.len());
        for name in names {
            let topic = self.topics.find(name);
            let watch = self.waiters.watch(name, topic);
            if let Some(value) = topic.and_then(|topic| self.topics.get_mut(topic)) {
                value.watch = Some(watch);
            }
            watches.push(watch);
        }
        let no = self.waiters.park(ticket, until, WaitKind::Reserve { terms, watches });
        if let Some(session) = terms.session {
            self.sessions.add_waiter(session, no);
        }
    }

    /// A request waits no more.
    pub(crate) fn unpark(&mut self, no: WaiterNo) -> Option<(Ticket, WaitKind)> {
        let waiter = self.waiters.waiting.remove(&no)?;
        self.waiters.by_ticket.remove(&waiter.ticket);
        self.waiters.ends.remove(&(waiter.until, no));
        match &waiter.kind {
            WaitKind::Reserve { terms, watches } => {
                if let Some(session) = terms.session {
                    self.sessions.drop_waiter(session, no);
                }
                for &watch in watches {
                    self.unwatch(watch, no);
                }
            }
            WaitKind::Lock(terms) => {
                if let Some(waiters) = self.waiters.locks.get_mut(&terms.name) {
                    waiters.remove(&no);
                    if waiters.is_empty() {
                        self.waiters.locks.remove(&terms.name);
                    }
                }
            }
        }
        Some((waiter.ticket, waiter.kind))
    }

    fn unwatch(&mut self, no: WatchNo, waiter: WaiterNo) {
        let Some(watch) = self.waiters.watches.get_mut(&no) else { return };
        watch.waiters.remove(&waiter);
        if !watch.waiters.is_empty() {
            return;
        }
        self.waiters.plan(no, None);
        let Some(watch) = self.waiters.watches.remove(&no) else { return };
        self.waiters.by_name.remove(&watch.name);
        if let Some(topic) = watch.topic
            && let Some(value) = self.topics.get_mut(topic)
        {
            value.watch = None;
            self.topics.note_unused(topic);
        }
    }

    /// Waits that are over are answered with nothing.
    pub(crate) fn end_waits(&mut self, now: Now, budget: &mut usize, out: &mut Output) {
        let mut from = (0, WaiterNo(0));
        while let Some(&(until, no)) = self.waiters.ends.range(from..).next()
            && until <= now.steady_ms
            && *budget > 0
        {
            *budget = budget.saturating_sub(self.waiters.cost(no));
            // One whose topics have still to be looked at stays: the look comes with the next tick,
            // whether or not time passes until then.
            if !self.waiters.is_unsure(no, now) {
                self.answer_with_nothing(no, out);
            }
            from = (until, WaiterNo(no.0 + 1));
        }
    }

    pub(crate) fn answer_with_nothing(&mut self, no: WaiterNo, out: &mut Output) {
        let Some((ticket, kind)) = self.unpark(no) else { return };
        let (answer, when) = match kind {
            WaitKind::Reserve { .. } => (Ok(Reply::Jobs(Vec::new())), When::Prompt),
            WaitKind::Lock(terms) => (Err(self.locked(&terms.name)), When::Durable),
        };
        out.answers.push((ticket, answer, when));
    }
}
