//! kick: delayed jobs to ready, the earliest first.

use std::collections::{BTreeSet, VecDeque};

use crate::Map;
use crate::command::{Command, Reply, operation};
use crate::error::Fatal;
use crate::job::JobId;
use crate::limits::BATCH_MAX;
use crate::machine::{ClassWalk, LongCommand, Machine, Output, Portion, PortionBudget, Rule};
use crate::place::{Class, Place};
use crate::time::{Clock, Now};
use crate::timeline::{Resting, Room, Stretch, Timeline};
use crate::topic::{TopicName, TopicNo};

/// Make delayed jobs ready, at most `limits::BATCH_MAX` per call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kick {
    /// The topic.
    pub topic: TopicName,
    /// How many.
    pub max: usize,
}

/// Jobs that are read ahead in a lane, and their bytes.
const AHEAD: Room = Room { jobs: 64, bytes: 64 << 10 };

/// A lane is not read before this position: when that is due by the calendar, and the rest of it.
type LaneHead = (u64, JobId, Class, u64);

/// A kick between two portions.
///
/// First it looks for the first delayed job of each lane; then it kicks the earliest of all, again
/// and again. Of the lanes only so many count as there are jobs to be kicked: the earliest.
#[derive(Debug)]
pub(crate) struct KickProgress {
    topic: Option<TopicNo>,
    /// Jobs that are still to be kicked, and those that were.
    left: usize,
    kicked: usize,
    /// The lane whose first job is looked for, and those behind it.
    lane: Option<(Class, (u64, JobId))>,
    walk: ClassWalk,
    heads: BTreeSet<LaneHead>,
    /// Jobs from this id on were put later: they are left alone.
    id_end: u64,
}

impl KickProgress {
    /// A lane goes on here, or later.
    fn add(&mut self, now: Now, place: Place) {
        self.heads.insert((place.due_wall_ms(now), place.id, place.class, place.due_at));
    }

    /// A lane begins here. One that begins after so many others has no part in it.
    fn add_first(&mut self, now: Now, place: Place) {
        self.add(now, place);
        if self.heads.len() > self.left {
            self.heads.pop_last();
        }
    }
}

/// Jobs of lanes that a portion has read ahead.
#[derive(Default)]
struct ReadAhead {
    jobs: Map<Class, VecDeque<Resting>>,
    /// How many were read of each lane: with each time more are worth it.
    read: Map<Class, usize>,
}

/// The result of reading on in a lane.
enum NextJob {
    Job(Box<Resting>),
    /// There is none.
    None,
    /// It is not known yet: read on from here.
    From((u64, JobId)),
}

operation! {
    Kick => u64,
        request => Command::Kick(request), Reply::Count(reply) => Ok(reply);
}

impl<T: Timeline> Machine<T> {
    #[expect(clippy::needless_pass_by_value, reason = "commands are passed by value")]
    pub(crate) fn kick(&mut self, kick: Kick) -> LongCommand {
        LongCommand::Kick(Box::new(KickProgress {
            topic: self.topics.find(&kick.topic),
            left: kick.max.min(BATCH_MAX),
            kicked: 0,
            lane: None,
            walk: ClassWalk::new(),
            heads: BTreeSet::new(),
            id_end: self.next_id,
        }))
    }

    pub(crate) fn kick_portion(
        &mut self,
        now: Now,
        mut progress: KickProgress,
        out: &mut Output,
    ) -> Rule<Portion> {
        let Some(topic) = progress.topic else { return Ok(Portion::Done(Reply::Count(0))) };
        let mut budget = PortionBudget::new();
        if self.find_heads(now, topic, &mut progress, &mut budget)?
            && self.kick_earliest(now, topic, &mut progress, &mut budget, out)?
        {
            return Ok(Portion::Done(Reply::Count(progress.kicked as u64)));
        }
        Ok(Portion::More(LongCommand::Kick(Box::new(progress))))
    }

    /// Looks for the first delayed job of each lane as far as the budget reaches; tells whether
    /// all lanes were asked.
    fn find_heads(
        &mut self,
        now: Now,
        topic: TopicNo,
        progress: &mut KickProgress,
        budget: &mut PortionBudget,
    ) -> Result<bool, Fatal> {
        loop {
            if progress.lane.is_none() {
                let class = self.next_class(topic, &mut progress.walk)?;
                progress.lane = class.map(|class| (class, (0, JobId(0))));
            }
            let Some((class, from)) = progress.lane else { return Ok(true) };
            if !budget.is_left() {
                return Ok(false);
            }
            // Each job is read for itself: there may be ten thousand lanes.
            let ahead = &mut ReadAhead::default();
            progress.lane = match self.read_on(now, (topic, class), from, 1, ahead, budget)? {
                NextJob::Job(first) if first.place.id.0 >= progress.id_end => {
                    Some((class, after(&first)))
                }
                NextJob::Job(first) => {
                    progress.add_first(now, first.place);
                    None
                }
                NextJob::None => None,
                NextJob::From(from) => Some((class, from)),
            };
        }
    }

    /// Kicks the earliest jobs as far as the budget reaches; tells whether it is done.
    fn kick_earliest(
        &mut self,
        now: Now,
        topic: TopicNo,
        progress: &mut KickProgress,
        budget: &mut PortionBudget,
        out: &mut Output,
    ) -> Result<bool, Fatal> {
        let mut ahead = ReadAhead::default();
        while progress.left > 0
            && let Some(head) = progress.heads.pop_first()
        {
            let (_, id, class, due_at) = head;
            let (lane, left) = ((topic, class), progress.left);
            let place = |(due_at, id)| Place { topic, class, due_at, id };
            match self.read_on(now, lane, (due_at, id), left, &mut ahead, budget)? {
                NextJob::None => {}
                NextJob::From(from) => {
                    progress.add(now, place(from));
                    if !budget.is_left() {
                        return Ok(false);
                    }
                }
                NextJob::Job(next) if next.place.id.0 >= progress.id_end => {
                    progress.add(now, place(after(&next)));
                }
                NextJob::Job(next) => {
                    let due = next.place.due_wall_ms(now);
                    let other = progress.heads.first();
                    if other.is_some_and(|other| (other.0, other.1) < (due, next.place.id)) {
                        progress.add(now, next.place);
                        ahead.give_back(*next);
                        continue;
                    }
                    progress.left -= 1;
                    progress.kicked += 1;
                    progress.add(now, place(after(&next)));
                    self.move_resting(*next, (Clock::Steady, now.steady_ms), true, out);
                }
            }
        }
        Ok(true)
    }

    /// The first delayed job of a lane from here on.
    fn read_on(
        &mut self,
        now: Now,
        (topic, class): (TopicNo, Class),
        from: (u64, JobId),
        wanted: usize,
        ahead: &mut ReadAhead,
        budget: &mut PortionBudget,
    ) -> Result<NextJob, Fatal> {
        if let Some(next) = ahead.jobs.get_mut(&class).and_then(VecDeque::pop_front) {
            return Ok(NextJob::Job(Box::new(next)));
        }
        if !budget.is_left() {
            return Ok(NextJob::From(from));
        }
        let read = ahead.read.entry(class).or_insert(0);
        let room = budget.room(Room { jobs: wanted.min(AHEAD.jobs).min(*read + 1), ..AHEAD });
        // Some may be ready by now.
        let from = from.max((now.on(class.clock()).saturating_add(1), JobId(0)));
        budget.look(self.timeline.sources());
        let Stretch { jobs, next } = self.timeline.page(topic, class, from, room)?;
        jobs.iter().for_each(|resting| budget.take(&resting.job));
        *read += jobs.len();
        let mut jobs = VecDeque::from(jobs);
        Ok(match (jobs.pop_front(), next) {
            (Some(first), _) => {
                ahead.jobs.insert(class, jobs);
                NextJob::Job(Box::new(first))
            }
            (None, Some(next)) => {
                // It passed cancelled jobs, as many as a portion may.
                budget.end();
                NextJob::From(next)
            }
            (None, None) => NextJob::None,
        })
    }
}

impl ReadAhead {
    /// It is not the earliest yet.
    fn give_back(&mut self, resting: Resting) {
        self.jobs.entry(resting.place.class).or_default().push_front(resting);
    }
}

/// The position behind a job.
fn after(resting: &Resting) -> (u64, JobId) {
    (resting.place.due_at, JobId(resting.place.id.0.saturating_add(1)))
}
