//! kick: delayed jobs to ready, the earliest first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::command::{Command, Reply, operation};
use crate::error::Fatal;
use crate::job::JobId;
use crate::limits::{BATCH_MAX, PORTION_JOBS};
use crate::machine::{LongCommand, Machine, Output, Portion, Rule};
use crate::place::Class;
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

/// Jobs and bytes read ahead per lane.
const PAGE: Room = Room { jobs: 64, bytes: 64 << 10 };

/// A kick between two portions.
#[derive(Debug)]
pub(crate) struct KickProgress {
    topic: Option<TopicNo>,
    /// Jobs that are still to be kicked, and those that were.
    left: usize,
    kicked: usize,
    /// How far cancelled jobs were passed, by class.
    passed: BTreeMap<Class, (u64, JobId)>,
    /// Jobs from this id on were put later: they are left alone.
    id_end: u64,
}

/// The delayed jobs of one lane, read page by page.
struct Lane {
    class: Class,
    read: VecDeque<Resting>,
    /// Where the next page begins; `None` = there is none.
    from: Option<(u64, JobId)>,
}

operation! {
    Kick => u64,
        request => Command::Kick(request), Reply::Count(reply) => Ok(reply);
}

impl<T: Timeline> Machine<T> {
    #[expect(clippy::needless_pass_by_value, reason = "commands are passed by value")]
    pub(crate) fn kick(&mut self, kick: Kick) -> LongCommand {
        let topic = self.topics.find(&kick.topic);
        let left = kick.max.min(BATCH_MAX);
        let (passed, id_end) = (BTreeMap::new(), self.next_id);
        LongCommand::Kick(KickProgress { topic, left, kicked: 0, passed, id_end })
    }

    pub(crate) fn kick_portion(
        &mut self,
        now: Now,
        mut progress: KickProgress,
        out: &mut Output,
    ) -> Rule<Portion> {
        let Some(topic) = progress.topic else { return Ok(Portion::Done(Reply::Count(0))) };
        let max = progress.left.min(PORTION_JOBS);
        let (count, is_whole) = self.kick_some(now, topic, max, &mut progress, out)?;
        progress.left -= count;
        progress.kicked += count;
        if progress.left == 0 || (is_whole && count < max) {
            return Ok(Portion::Done(Reply::Count(progress.kicked as u64)));
        }
        Ok(Portion::More(LongCommand::Kick(progress)))
    }

    /// Kicks up to `max` jobs. Tells how many, and whether it was not held up by cancelled jobs.
    fn kick_some(
        &mut self,
        now: Now,
        topic: TopicNo,
        max: usize,
        progress: &mut KickProgress,
        out: &mut Output,
    ) -> Result<(usize, bool), Fatal> {
        let mut lanes = Vec::new();
        let mut heads = BinaryHeap::new();
        for class in self.timeline.classes(topic)? {
            let delayed = (now.on(class.clock()).saturating_add(1), JobId(0));
            let from = progress.passed.get(&class).map_or(delayed, |passed| delayed.max(*passed));
            let mut lane = Lane { class, read: VecDeque::new(), from: Some(from) };
            if let Some(passed) = self.read_lane(topic, &mut lane, max, progress.id_end)? {
                progress.passed.insert(class, passed);
                return Ok((0, false));
            }
            heads.extend(lane.head(now, lanes.len()));
            lanes.push(lane);
        }
        let mut count = 0;
        while count < max
            && let Some(Reverse((_, _, index))) = heads.pop()
            && let Some(lane) = lanes.get_mut(index)
            && let Some(resting) = lane.read.pop_front()
        {
            self.move_resting(resting, (Clock::Steady, now.steady_ms), true, out);
            count += 1;
            if let Some(passed) = self.read_lane(topic, lane, max - count, progress.id_end)? {
                progress.passed.insert(lane.class, passed);
                return Ok((count, false));
            }
            heads.extend(lane.head(now, index));
        }
        Ok((count, true))
    }

    /// Reads on in the lane if need be. Tells where to go on if it has passed a portion of
    /// cancelled jobs, and what lies behind them is not known yet.
    fn read_lane(
        &mut self,
        topic: TopicNo,
        lane: &mut Lane,
        wanted: usize,
        id_end: u64,
    ) -> Result<Option<(u64, JobId)>, Fatal> {
        while lane.read.is_empty()
            && wanted > 0
            && let Some(from) = lane.from.take()
        {
            let room = Room { jobs: wanted.min(PAGE.jobs), ..PAGE };
            let Stretch { jobs, next } = self.timeline.page(topic, lane.class, from, room)?;
            if jobs.is_empty() && next.is_some() {
                return Ok(next);
            }
            let after = |last: &Resting| (last.place.due_at, JobId(last.place.id.0 + 1));
            lane.from = next.or_else(|| jobs.last().map(after));
            lane.read = jobs.into_iter().filter(|resting| resting.place.id.0 < id_end).collect();
        }
        Ok(None)
    }
}

impl Lane {
    /// Its first job, as it competes with those of other lanes.
    fn head(&self, now: Now, index: usize) -> Option<Reverse<(u64, JobId, usize)>> {
        let first = self.read.front()?;
        Some(Reverse((first.place.due_wall_ms(now), first.place.id, index)))
    }
}
