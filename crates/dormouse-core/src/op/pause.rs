//! pause and resume: stop reserve on a topic, nothing else. Survives a restart.

use crate::command::{Command, Reply, operation};
use crate::fact::Fact;
use crate::limits::TTL_MS_MAX;
use crate::machine::{Machine, Origin, Output, Rule};
use crate::op::check;
use crate::time::Now;
use crate::timeline::Timeline;
use crate::topic::{Pause, TopicName};

/// Stop reserve on a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseTopic {
    /// The topic.
    pub topic: TopicName,
    /// The duration; `None` = until resumed.
    pub for_ms: Option<i64>,
}

/// Undo a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume(pub TopicName);

operation! {
    PauseTopic => (),
        request => Command::Pause(request), Reply::Done => Ok(());
    Resume => (),
        Resume(topic) => Command::Resume(topic), Reply::Done => Ok(());
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn pause(&mut self, now: Now, pause: &PauseTopic, out: &mut Output) -> Rule<Reply> {
        let until = match pause.for_ms {
            None => Pause::Open,
            Some(ms) => Pause::Until(now.after(check::span("pause", ms, 0, TTL_MS_MAX)?)),
        };
        let topic = self.topic_or_birth(&pause.topic, out)?;
        self.commit(Fact::TopicPaused { topic, pause: Some(until) }, Origin::Live, out);
        Ok(Reply::Done)
    }

    pub(crate) fn resume(&mut self, name: &TopicName, out: &mut Output) -> Rule<Reply> {
        if let Some(topic) = self.topics.find(name)
            && self.topics.get(topic).is_some_and(|value| value.pause.is_some())
        {
            self.commit(Fact::TopicPaused { topic, pause: None }, Origin::Live, out);
        }
        Ok(Reply::Done)
    }
}
