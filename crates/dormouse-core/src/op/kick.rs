//! kick: delayed jobs to ready, the earliest first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

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
        LongCommand::Kick(KickProgress { topic, left: kick.max.min(BATCH_MAX), kicked: 0 })
    }

    pub(crate) fn kick_portion(
        &mut self,
        now: Now,
        mut progress: KickProgress,
        out: &mut Output,
    ) -> Rule<Portion> {
        let Some(topic) = progress.topic else { return Ok(Portion::Done(Reply::Count(0))) };
        let max = progress.left.min(PORTION_JOBS);
        let (count, is_whole) = self.kick_some(now, topic, max, out)?;
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
        out: &mut Output,
    ) -> Result<(usize, bool), Fatal> {
        let mut lanes = Vec::new();
        let mut heads = BinaryHeap::new();
        for class in self.timeline.classes(topic)? {
            let from = Some((now.on(class.clock()).saturating_add(1), JobId(0)));
            let mut lane = Lane { class, read: VecDeque::new(), from };
            if !self.offer_head(now, topic, lanes.len(), &mut lane, max, &mut heads)? {
                return Ok((0, false));
            }
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
            if !self.offer_head(now, topic, index, lane, max - count, &mut heads)? {
                return Ok((count, false));
            }
        }
        Ok((count, true))
    }

    /// Reads on in the lane if need be, and lets its first job compete. `false` = a portion of
    /// cancelled jobs was passed, and what lies behind them is not known yet.
    fn offer_head(
        &mut self,
        now: Now,
        topic: TopicNo,
        index: usize,
        lane: &mut Lane,
        wanted: usize,
        heads: &mut BinaryHeap<Reverse<(u64, JobId, usize)>>,
    ) -> Result<bool, Fatal> {
        if lane.read.is_empty()
            && wanted > 0
            && let Some(from) = lane.from.take()
        {
            let room = Room { jobs: wanted.min(PAGE.jobs), ..PAGE };
            let Stretch { jobs, next } = self.timeline.page(topic, lane.class, from, room)?;
            if jobs.is_empty() && next.is_some() {
                return Ok(false);
            }
            let after = |last: &Resting| (last.place.due_at, JobId(last.place.id.0 + 1));
            lane.from = next.or_else(|| jobs.last().map(after));
            lane.read = jobs.into();
        }
        if let Some(first) = lane.read.front() {
            heads.push(Reverse((first.place.due_wall_ms(now), first.place.id, index)));
        }
        Ok(true)
    }
}
