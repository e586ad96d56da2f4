//! kick: delayed jobs to ready, the earliest first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::command::{Command, Reply, operation};
use crate::error::Fatal;
use crate::job::JobId;
use crate::limits::BATCH_MAX;
use crate::machine::{Machine, Output, Rule};
use crate::place::Class;
use crate::time::{Clock, Now};
use crate::timeline::{Resting, Room, Timeline};
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
    pub(crate) fn kick(&mut self, now: Now, kick: &Kick, out: &mut Output) -> Rule<Reply> {
        let Some(topic) = self.topics.find(&kick.topic) else { return Ok(Reply::Count(0)) };
        let max = kick.max.min(BATCH_MAX);
        let mut lanes = Vec::new();
        let mut heads = BinaryHeap::new();
        for class in self.timeline.classes(topic)? {
            let from = Some((now.on(class.clock()).saturating_add(1), JobId(0)));
            let mut lane = Lane { class, read: VecDeque::new(), from };
            self.offer_head(now, topic, lanes.len(), &mut lane, max, &mut heads)?;
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
            self.offer_head(now, topic, index, lane, max - count, &mut heads)?;
        }
        Ok(Reply::Count(count as u64))
    }

    /// Reads on in the lane if need be, and lets its first job compete.
    fn offer_head(
        &mut self,
        now: Now,
        topic: TopicNo,
        index: usize,
        lane: &mut Lane,
        wanted: usize,
        heads: &mut BinaryHeap<Reverse<(u64, JobId, usize)>>,
    ) -> Result<(), Fatal> {
        if lane.read.is_empty()
            && let Some(from) = lane.from.take()
        {
            let room = Room { jobs: wanted.min(PAGE.jobs), ..PAGE };
            lane.read = self.timeline.page(topic, lane.class, from, room)?.into();
            let after = |last: &Resting| (last.place.due_at, JobId(last.place.id.0 + 1));
            lane.from = lane.read.back().map(after);
        }
        if let Some(first) = lane.read.front() {
            heads.push(Reverse((first.place.due_wall_ms(now), first.place.id, index)));
        }
        Ok(())
    }
}
