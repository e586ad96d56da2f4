//! purge: remove all resting jobs of a topic and free their keys. Leased jobs stay.

use crate::command::{Command, Reply, operation};
use crate::fact::Fact;
use crate::machine::{Machine, Origin, Output, Rule};
use crate::timeline::Timeline;
use crate::topic::TopicName;

/// Remove all resting jobs of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purge(pub TopicName);

operation! {
    Purge => u64,
        Purge(topic) => Command::Purge(topic), Reply::Count(reply) => Ok(reply);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn purge(&mut self, name: &TopicName, out: &mut Output) -> Rule<Reply> {
        let Some(topic) = self.topics.find(name) else { return Ok(Reply::Count(0)) };
        let Some(value) = self.topics.get(topic) else { return Ok(Reply::Count(0)) };
        let resting = value.counts.waiting + value.counts.dead;
        // Where nothing ever rested there is nothing to write down, not even a hold.
        if resting > 0 || value.counts.done > 0 || value.holds_until > 0 {
            self.commit(Fact::Purged { topic }, Origin::Live, out);
        }
        Ok(Reply::Count(resting))
    }
}
