//! peek: the next job of a state, without leasing it.

use crate::command::{Command, Reply, operation};
use crate::error::Fatal;
use crate::job::{JobId, State};
use crate::machine::{LongCommand, Machine, Portion, Rule};
use crate::op::JobView;
use crate::place::{Class, Place};
use crate::time::Now;
use crate::timeline::{Head, Resting, Room, Stretch, Timeline};
use crate::topic::{TopicName, TopicNo};

/// Look at the next job of a state: ready as reserve would give it, delayed by due time, dead by
/// age, leased by expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    /// The topic.
    pub topic: TopicName,
    /// Which state.
    pub state: State,
}

/// A peek between two portions.
#[derive(Debug)]
pub(crate) struct PeekProgress {
    peek: Peek,
    /// The earliest delayed job of the classes before `next`, and where to go on.
    best: Option<Place>,
    next: Option<(Class, (u64, JobId))>,
}

operation! {
    Peek => Option<JobView>,
        request => Command::Peek(request), Reply::View(reply) => Ok(reply);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn peek(peek: Peek) -> LongCommand {
        LongCommand::Peek(PeekProgress { peek, best: None, next: None })
    }

    pub(crate) fn peek_portion(&mut self, now: Now, mut progress: PeekProgress) -> Rule<Portion> {
        let view = |view| Ok(Portion::Done(Reply::View(view)));
        let Some(topic) = self.topics.find(&progress.peek.topic) else { return view(None) };
        let head = match progress.peek.state {
            State::Leased => {
                let first = self.first_to_expire(topic);
                return view(first.and_then(|id| self.view_leased(id, now)));
            }
            // The frontier keeps which cancelled jobs were passed.
            State::Ready => self.next_ready(topic, now)?,
            State::Delayed => self.next_delayed(topic, now, &mut progress)?,
            State::Dead => self.timeline.oldest(topic, Class::DEAD)?,
        };
        let resting = match head {
            Head::At(place) => self.resting_at(place)?,
            Head::Empty => None,
            Head::Again => return Ok(Portion::More(LongCommand::Peek(progress))),
        };
        view(resting.and_then(|resting| self.view_resting(resting, now)))
    }

    fn resting_at(&mut self, place: Place) -> Result<Option<Resting>, Fatal> {
        let from = (place.due_at, place.id);
        Ok(self.timeline.page(place.topic, place.class, from, Room::jobs(1))?.jobs.pop())
    }

    /// The job that reserve would give next if the topic were not paused and all puts durable.
    pub(crate) fn next_ready(&mut self, topic: TopicNo, now: Now) -> Result<Head, Fatal> {
        let mut best = None::<Place>;
        for class in self.timeline.classes(topic)? {
            if best.is_some_and(|best| best.class.priority() < class.priority()) {
                break;
            }
            match self.timeline.oldest(topic, class)? {
                Head::At(head)
                    if head.is_due(now)
                        && best.is_none_or(|best| head.given_before(&best, now)) =>
                {
                    best = Some(head);
                }
                Head::Again => return Ok(Head::Again),
                Head::At(_) | Head::Empty => {}
            }
        }
        Ok(best.map_or(Head::Empty, Head::At))
    }

    fn next_delayed(
        &mut self,
        topic: TopicNo,
        now: Now,
        progress: &mut PeekProgress,
    ) -> Result<Head, Fatal> {
        let rank = |place: &Place| (place.due_wall_ms(now), place.id);
        for class in self.timeline.classes(topic)? {
            let from = match progress.next {
                Some((reached, _)) if class < reached => continue,
                Some((reached, from)) if class == reached => from,
                _ => (now.on(class.clock()).saturating_add(1), JobId(0)),
            };
            let Stretch { jobs, next } = self.timeline.page(topic, class, from, Room::jobs(1))?;
            if let (true, Some(next)) = (jobs.is_empty(), next) {
                progress.next = Some((class, next));
                return Ok(Head::Again);
            }
            let first = jobs.first().map(|resting| resting.place);
            progress.best = progress.best.into_iter().chain(first).min_by_key(rank);
        }
        Ok(progress.best.map_or(Head::Empty, Head::At))
    }

    /// The lease of a topic that runs out first.
    fn first_to_expire(&self, topic: TopicNo) -> Option<JobId> {
        let count = usize::try_from(self.topics.get(topic)?.counts.leased).unwrap_or(usize::MAX);
        let of_topic = |id: &JobId| self.leases.get(*id).is_some_and(|lease| lease.topic == topic);
        // Of a topic with few of all leases look at those; with many, one stands soon in line.
        if count.saturating_mul(count) < self.leases.len() {
            let ends = |id: &JobId| (self.leases.get(*id).map_or(0, |lease| lease.expires_at), *id);
            return self.leases.of_topic(topic, JobId(0)).min_by_key(ends);
        }
        self.leases.by_expiry().find(of_topic)
    }
}
