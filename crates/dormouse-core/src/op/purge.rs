//! purge: remove resting jobs of a topic and free their keys. Leased jobs stay.
//!
//! All that rests goes in one step, whatever its number. The jobs of one state have no such
//! short cut: they are counted, and then removed in portions.

use super::list::{ListedLane, only_class};
use super::stats::TopicCount;
use crate::command::{Command, Reply, operation};
use crate::error::{Error, Fatal};
use crate::fact::Fact;
use crate::job::State;
use crate::machine::{
    ClassWalk, LongCommand, Machine, Origin, Output, Portion, PortionBudget, Rule,
};
use crate::refusal::{purge_leased, purge_too_many};
use crate::time::Now;
use crate::timeline::{Room, Timeline};
use crate::topic::{TopicName, TopicNo};

/// Remove resting jobs of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purge {
    /// The topic.
    pub topic: TopicName,
    /// Only those of this state, which is not leased; `None` = all that rest.
    pub state: Option<State>,
    /// Answer `conflict` and remove nothing if there are more.
    pub at_most: Option<u64>,
}

impl From<TopicName> for Purge {
    /// All that rest.
    fn from(topic: TopicName) -> Purge {
        Purge { topic, state: None, at_most: None }
    }
}

impl Purge {
    /// Whether jobs of this state can be purged.
    pub fn check(&self) -> Result<(), Error> {
        if self.state == Some(State::Leased) { Err(purge_leased()) } else { Ok(()) }
    }

    /// Refuses if there are more jobs than the request allows.
    pub fn check_count(&self, count: u64) -> Result<(), Error> {
        match self.at_most {
            Some(at_most) if count > at_most => Err(purge_too_many(self, count, at_most)),
            _ => Ok(()),
        }
    }
}

operation! {
    Purge => u64,
        request => Command::Purge(request), Reply::Count(reply) => Ok(reply);
}

/// A purge of one state between two portions.
#[derive(Debug)]
pub(crate) struct PurgeProgress {
    purge: Purge,
    state: State,
    topic: Option<TopicNo>,
    /// The ready jobs as far as they were counted; `None` = nothing is to be counted any more.
    count: Option<TopicCount>,
    /// The lane that is being read, and those behind it.
    lane: Option<ListedLane>,
    walk: ClassWalk,
    /// Jobs that may still be removed, and those that were.
    left: u64,
    removed: u64,
    /// Jobs from this id on were put later: they are left alone.
    id_end: u64,
}

impl<T: Timeline> Machine<T> {
    /// Removes all that rests.
    pub(crate) fn purge(&mut self, purge: &Purge, out: &mut Output) -> Rule<Reply> {
        let Some(topic) = self.topics.find(&purge.topic) else { return Ok(Reply::Count(0)) };
        let Some(value) = self.topics.get(topic) else { return Ok(Reply::Count(0)) };
        let resting = value.counts.waiting + value.counts.dead;
        purge.check_count(resting)?;
        // Where nothing ever rested there is nothing to write down, not even a hold.
        if resting > 0 || value.counts.done > 0 || value.holds_until > 0 {
            self.commit(Fact::Purged { topic }, Origin::Live, out);
        }
        Ok(Reply::Count(resting))
    }

    /// Begins to remove the jobs of a state.
    pub(crate) fn purge_state(&mut self, purge: Purge, state: State) -> Rule<LongCommand> {
        purge.check()?;
        let topic = self.topics.find(&purge.topic);
        let count = topic.filter(|_| purge.at_most.is_some()).map(TopicCount::new);
        let lane = only_class(state).map(ListedLane::first_of);
        Ok(LongCommand::Purge(Box::new(PurgeProgress {
            left: purge.at_most.unwrap_or(u64::MAX),
            purge,
            state,
            topic,
            count,
            lane,
            walk: ClassWalk::new(),
            removed: 0,
            id_end: self.next_id,
        })))
    }

    pub(crate) fn purge_portion(
        &mut self,
        now: Now,
        mut progress: PurgeProgress,
        out: &mut Output,
    ) -> Rule<Portion> {
        let mut budget = PortionBudget::new();
        if let Some(mut count) = progress.count.take() {
            let waits = only_class(progress.state).is_none();
            if waits && !self.count_classes(now, &mut count, &mut budget)? {
                progress.count = Some(count);
                return Ok(Portion::More(LongCommand::Purge(Box::new(progress))));
            }
            let stats = self.topic_stats(now, &count);
            progress.purge.check_count(match progress.state {
                State::Delayed => stats.delayed,
                State::Ready => stats.ready,
                State::Dead => stats.counts.dead,
                State::Done => stats.counts.done,
                State::Leased => 0,
            })?;
        }
        if self.purge_lanes(now, &mut progress, &mut budget, out)? {
            return Ok(Portion::Done(Reply::Count(progress.removed)));
        }
        Ok(Portion::More(LongCommand::Purge(Box::new(progress))))
    }

    /// Removes jobs as far as the budget reaches; tells whether it is done.
    fn purge_lanes(
        &mut self,
        now: Now,
        progress: &mut PurgeProgress,
        budget: &mut PortionBudget,
        out: &mut Output,
    ) -> Result<bool, Fatal> {
        let Some(topic) = progress.topic else { return Ok(true) };
        let state = progress.state;
        let is_walk = only_class(state).is_none();
        while progress.left > 0 {
            if progress.lane.is_none() && is_walk {
                let class = self.next_class(topic, &mut progress.walk)?;
                progress.lane = class.map(ListedLane::first_of);
            }
            let Some(lane) = progress.lane else { return Ok(true) };
            if !budget.is_left() {
                return Ok(false);
            }
            budget.look(self.timeline.sources());
            let jobs = usize::try_from(progress.left).unwrap_or(usize::MAX);
            let room = budget.room(Room { jobs, bytes: u64::MAX });
            let bounds = (0, u64::MAX);
            let (stretch, lane) = self.page_of_state(now, topic, lane, state, (bounds, room))?;
            if stretch.jobs.is_empty() && stretch.next.is_some() {
                // It passed cancelled jobs, as many as a portion may.
                budget.end();
            }
            progress.lane = lane;
            for resting in stretch.jobs {
                budget.take(&resting.job);
                if resting.place.id.0 < progress.id_end {
                    progress.left -= 1;
                    progress.removed += 1;
                    self.forget(Origin::Found, resting, now, out);
                }
            }
        }
        Ok(true)
    }
}
