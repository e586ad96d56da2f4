//! Requests that wait, and the races among them that nobody may rely on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::State;
use dormouse_core::op::*;
use dormouse_core::topic::TopicName;

use crate::generate::vocabulary::{TOPICS, topic};
use crate::harness::redis::model::lockstep::{World, brief};

/// Longer than a request takes to be parked.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A request that was not answered yet.
struct Request {
    server: usize,
    /// The topics of a reserve that waits; none = it is a lock, or does not wait.
    topics: Vec<TopicName>,
    /// When its wait ends.
    until_ms: u64,
    command: Command,
}

/// Requests under way and requests that wait. All that wait are at one server: which of two servers
/// is the first to take a job is chance.
#[derive(Default)]
pub(crate) struct Parked {
    requests: BTreeMap<Ticket, Request>,
}

impl Parked {
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Where they wait.
    pub(crate) fn server(&self) -> Option<usize> {
        self.requests.values().next().map(|request| request.server)
    }

    /// A request that may have to wait.
    pub(crate) fn expect(&mut self, ticket: Ticket, server: usize, command: &Command, now_ms: u64) {
        let (topics, wait_ms) = match command {
            Command::Reserve(reserve) if reserve.wait_ms > 0 => {
                (reserve.distinct_topics(), reserve.wait_ms)
            }
            _ => (Vec::new(), 0),
        };
        let (until_ms, command) = (now_ms + wait_ms.unsigned_abs(), command.clone());
        self.requests.insert(ticket, Request { server, topics, until_ms, command });
    }

    /// It was answered; this is what it was.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<Command> {
        self.requests.remove(&ticket).map(|request| request.command)
    }

    /// How many wait for jobs of this topic.
    fn on(&self, topic: &TopicName) -> u64 {
        self.requests.values().filter(|request| request.topics.contains(topic)).count() as u64
    }

    /// Whether the same owner waits for this lock already.
    fn waits_for(&self, lock: &Lock) -> bool {
        let same = |other: &Lock| (&other.name, &other.owner) == (&lock.name, &lock.owner);
        let mut waiting = self.requests.values().map(|request| &request.command);
        waiting.any(|command| matches!(command, Command::Lock(other) if same(other)))
    }

    /// Reserves that end until then while others wait for the same jobs.
    fn ending(&self, at_ms: u64) -> Vec<Ticket> {
        let ends = self.requests.iter().filter(|(_, request)| request.until_ms <= at_ms);
        let contested = ends.filter(|(_, request)| request.topics.iter().any(|t| self.on(t) > 1));
        contested.map(|(ticket, _)| *ticket).collect()
    }

    /// Whether others wait for a topic of one that waits on several.
    fn is_contested(&self) -> bool {
        let mut several = self.on_several().into_iter();
        several.any(|(_, topics)| topics.iter().any(|topic| self.on(topic) > 1))
    }

    /// Those that wait on several topics.
    fn on_several(&self) -> Vec<(Ticket, Vec<TopicName>)> {
        let several = self.requests.iter().filter(|(_, request)| request.topics.len() > 1);
        several.map(|(ticket, request)| (*ticket, request.topics.clone())).collect()
    }
}

fn may_make_visible(command: &Command) -> bool {
    matches!(
        command,
        Command::Put(_)
            | Command::Nack(_)
            | Command::Release(_)
            | Command::Reschedule(_)
            | Command::Revive(_)
            | Command::ReviveTopic(_)
            | Command::Kick(_)
            | Command::ReleaseTopic(_)
            | Command::Resume(_)
            | Command::CloseSession(_)
    )
}

impl World<'_> {
    /// Requests that the rules have parked are parked at their server too, before anything else
    /// happens: their time runs from then.
    pub(crate) fn wait_until_parked(
        &mut self,
        server: usize,
        tickets: &[Ticket],
    ) -> Result<(), String> {
        for ticket in tickets {
            let Some(request) = self.parked.requests.get(ticket) else { continue };
            let topic = request.topics.first().cloned();
            let want = match &topic {
                Some(topic) => self.parked.on(topic),
                None => self.parked.requests.len() as u64,
            };
            let shown = brief(&request.command);
            self.source.tickets.push(*ticket);
            let began = Instant::now();
            while self.waiters(server, topic.clone())? < want {
                if began.elapsed() > TIMEOUT {
                    return Err(format!("it does not wait: {shown}"));
                }
            }
        }
        Ok(())
    }

    fn waiters(&self, server: usize, topic: Option<TopicName>) -> Result<u64, String> {
        match self.subject.ask(server, Command::Stats(Stats { topic }))? {
            Ok(Reply::Stats(stats)) => Ok(stats.waiters),
            _ => Ok(0),
        }
    }

    /// Makes a command one whose outcome is certain.
    pub(crate) fn fit_to_waiting(&mut self, command: &mut Command) -> Result<(), String> {
        if let Command::Reserve(reserve) = command
            && (reserve.session.is_some()
                || reserve.topics.iter().any(|topic| self.limited.contains(topic))
                || self.has_ties(&reserve.topics))
        {
            reserve.topics.truncate(1);
        }
        if let Command::Lock(lock) = command
            && self.parked.waits_for(lock)
        {
            lock.wait_ms = 0;
        }
        if let Command::Topics(page) = command
            && !self.parked.is_empty()
        {
            // Topics that are only watched are left out, so pages would not begin at the same one.
            *page = Topics { after: None, limit: 10 };
        }
        if self.parked.on_several().is_empty() {
            return Ok(());
        }
        if self.parked.is_contested() && may_make_visible(command) {
            return self.withdraw_several();
        }
        // A request that waits on several topics gets the first job; of two at once, either.
        match command {
            Command::Put(all) => all.truncate(1),
            Command::Nack(all) => all.truncate(1),
            Command::Release(all) => all.truncate(1),
            Command::Reschedule(all) => all.truncate(1),
            Command::Revive(all) => all.truncate(1),
            Command::CloseSession(_) | Command::ReleaseTopic(_) => return self.withdraw_several(),
            _ => {}
        }
        Ok(())
    }

    /// Whether ready jobs of different topics have the same priority and due time: which comes
    /// first is then a matter of ids, and those of different topics are in no order.
    fn has_ties(&mut self, topics: &[TopicName]) -> bool {
        if topics.len() < 2 {
            return false;
        }
        let mut ranks = BTreeMap::new();
        for topic in topics {
            for view in self.oracle.all(topic, State::Ready) {
                let rank = (view.job.progress.priority, view.due_at);
                let first = ranks.entry(rank).or_insert_with(|| topic.clone());
                if first != topic {
                    return true;
                }
            }
        }
        false
    }

    /// A request is withdrawn before an instant at which several of its topics have a job.
    pub(crate) fn leave_races(&mut self, at_ms: u64) -> Result<(), String> {
        for ticket in self.parked.ending(at_ms) {
            self.withdraw(ticket)?;
        }
        for (_, topics) in self.parked.on_several() {
            let with_offer = topics.iter().filter(|topic| {
                let states = [State::Ready, State::Delayed, State::Leased];
                let mut jobs = states.iter().flat_map(|state| self.oracle.all(topic, *state));
                jobs.any(|view| view.due_at <= at_ms)
            });
            let offers: Vec<&TopicName> = with_offer.collect();
            if offers.len() > 1 || offers.iter().any(|topic| self.parked.on(topic) > 1) {
                return self.withdraw_several();
            }
        }
        Ok(())
    }

    pub(crate) fn withdraw_several(&mut self) -> Result<(), String> {
        for (ticket, _) in self.parked.on_several() {
            self.withdraw(ticket)?;
        }
        Ok(())
    }

    fn withdraw(&mut self, ticket: Ticket) -> Result<(), String> {
        match self.parked.requests.get(&ticket).map(|request| request.server) {
            Some(server) => self.ask(server, vec![Command::Withdraw(ticket)]),
            None => Ok(()),
        }
    }

    /// Ends when no poll is under way at this server for a withdrawn request: a job that it finds
    /// would be taken and given back, which counts.
    pub(crate) fn wait_until_still(&mut self, server: usize) -> Result<(), String> {
        for number in 0..TOPICS.len() as u16 {
            let stats = Stats { topic: Some(topic(number)) };
            self.subject.ask(server, Command::Stats(stats))?.ok();
        }
        Ok(())
    }

    /// Nobody waits any more.
    pub(crate) fn withdraw_all(&mut self) -> Result<(), String> {
        while let Some(&ticket) = self.parked.requests.keys().next() {
            self.withdraw(ticket)?;
        }
        Ok(())
    }
}
