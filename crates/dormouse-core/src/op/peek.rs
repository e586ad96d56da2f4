//! peek: the next job of a state, without leasing it.

use crate::command::{Command, Reply, operation};
use crate::error::Fatal;
use crate::job::{JobId, State};
use crate::limits::PORTION_ENTRIES;
use crate::machine::{ClassWalk, LongCommand, Machine, Portion, PortionBudget, Rule};
use crate::op::JobView;
use crate::place::{Class, Place};
use crate::time::Now;
use crate::timeline::{Head, Resting, Room, Stretch, Timeline};
use crate::topic::{TopicName, TopicNo};

/// Look at the next job of a state: ready as reserve would give it, delayed by due time, dead and
/// done by age, leased by expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    /// The topic.
    pub topic: TopicName,
    /// Which state.
    pub state: State,
}

/// A lane, and where to go on in it.
type PeekedLane = (Class, (u64, JobId));

/// A peek between two portions.
#[derive(Debug)]
pub(crate) struct PeekProgress {
    peek: Peek,
    walk: ClassWalk,
    /// The lane that is being looked at, and where to go on in it.
    lane: Option<PeekedLane>,
    /// The best job of the lanes before it.
    best: Option<Place>,
    leased: LeasedProgress,
}

/// A look for the lease of a topic that runs out first.
#[derive(Debug, Default)]
struct LeasedProgress {
    from: JobId,
    first: Option<(u64, JobId)>,
}

operation! {
    Peek => Option<JobView>,
        request => Command::Peek(request), Reply::View(reply) => Ok(reply.map(|view| *view));
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn peek(peek: Peek) -> LongCommand {
        let (walk, leased) = (ClassWalk::new(), LeasedProgress::default());
        LongCommand::Peek(Box::new(PeekProgress { peek, walk, lane: None, best: None, leased }))
    }

    pub(crate) fn peek_portion(&mut self, now: Now, mut progress: PeekProgress) -> Rule<Portion> {
        let view = |view: Option<JobView>| Ok(Portion::Done(Reply::View(view.map(Box::new))));
        let Some(topic) = self.topics.find(&progress.peek.topic) else { return view(None) };
        let head = match progress.peek.state {
            State::Leased => {
                if !self.first_to_expire(topic, &mut progress.leased) {
                    return Ok(Portion::More(LongCommand::Peek(Box::new(progress))));
                }
                let first = progress.leased.first;
                return view(first.and_then(|(_, id)| self.view_leased(id, now)));
            }
            State::Ready => self.next_ready(topic, now, &mut progress)?,
            State::Delayed => self.next_delayed(topic, now, &mut progress)?,
            State::Dead => self.timeline.oldest(topic, Class::DEAD)?,
            State::Done => self.timeline.oldest(topic, Class::DONE)?,
        };
        let resting = match head {
            Head::At(place) => self.resting_at(place)?,
            Head::Empty => None,
            Head::Again => return Ok(Portion::More(LongCommand::Peek(Box::new(progress)))),
        };
        view(resting.and_then(|resting| self.view_resting(resting, now)))
    }

    fn resting_at(&mut self, place: Place) -> Result<Option<Resting>, Fatal> {
        let from = (place.due_at, place.id);
        Ok(self.timeline.page(place.topic, place.class, from, Room::jobs(1))?.jobs.pop())
    }

    /// The job that reserve would give next if the topic were not paused and all puts durable.
    fn next_ready(
        &mut self,
        topic: TopicNo,
        now: Now,
        progress: &mut PeekProgress,
    ) -> Result<Head, Fatal> {
        let mut budget = PortionBudget::new();
        while let Some((class, _)) = self.peeked_lane(topic, progress)? {
            if progress.best.is_some_and(|best| best.class.priority() < class.priority()) {
                break;
            }
            if !budget.is_left() {
                return Ok(Head::Again);
            }
            budget.look(self.timeline.sources());
            let best = progress.best;
            match self.timeline.oldest(topic, class)? {
                Head::At(head)
                    if head.is_due(now)
                        && best.is_none_or(|best| head.given_before(&best, now)) =>
                {
                    progress.best = Some(head);
                }
                // The frontier keeps which cancelled jobs were passed.
                Head::Again => return Ok(Head::Again),
                Head::At(_) | Head::Empty => {}
            }
            progress.lane = None;
        }
        Ok(progress.best.map_or(Head::Empty, Head::At))
    }

    fn next_delayed(
        &mut self,
        topic: TopicNo,
        now: Now,
        progress: &mut PeekProgress,
    ) -> Result<Head, Fatal> {
        let rank = |place: &Place| (place.due_wall_ms(now), place.id);
        let mut budget = PortionBudget::new();
        while let Some((class, from)) = self.peeked_lane(topic, progress)? {
            if !budget.is_left() {
                return Ok(Head::Again);
            }
            budget.look(self.timeline.sources());
            let from = from.max((now.on(class.clock()).saturating_add(1), JobId(0)));
            let Stretch { jobs, next } = self.timeline.page(topic, class, from, Room::jobs(1))?;
            if let (true, Some(next)) = (jobs.is_empty(), next) {
                progress.lane = Some((class, next));
                return Ok(Head::Again);
            }
            jobs.iter().for_each(|resting| budget.take(&resting.job));
            let first = jobs.first().map(|resting| resting.place);
            progress.best = progress.best.into_iter().chain(first).min_by_key(rank);
            progress.lane = None;
        }
        Ok(progress.best.map_or(Head::Empty, Head::At))
    }

    /// The lane that is to be looked at on, or the next one, from its begin.
    fn peeked_lane(
        &mut self,
        topic: TopicNo,
        progress: &mut PeekProgress,
    ) -> Result<Option<PeekedLane>, Fatal> {
        if progress.lane.is_none() {
            let class = self.next_class(topic, &mut progress.walk)?;
            progress.lane = class.map(|class| (class, (0, JobId(0))));
        }
        Ok(progress.lane)
    }

    /// Looks for the lease of a topic that runs out first; tells whether it is found.
    fn first_to_expire(&self, topic: TopicNo, progress: &mut LeasedProgress) -> bool {
        let expiry =
            |id: JobId| self.leases.get(id).map(|lease| (lease.topic, lease.expires_at, id));
        // With many of all leases, one of its own stands soon in line.
        let soon = self.leases.by_expiry().take(PORTION_ENTRIES / 4).filter_map(expiry);
        if let Some((_, at, id)) = soon.into_iter().find(|lease| lease.0 == topic) {
            progress.first = Some((at, id));
            return true;
        }
        let mut ids = self.leases.of_topic(topic, progress.from);
        for id in ids.by_ref().take(PORTION_ENTRIES) {
            let ends = expiry(id).map(|(_, at, id)| (at, id));
            progress.first = progress.first.into_iter().chain(ends).min();
        }
        match ids.next() {
            Some(id) => {
                progress.from = id;
                false
            }
            None => true,
        }
    }
}
