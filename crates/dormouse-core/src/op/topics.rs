//! topics: a page of topic names.

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::machine::{Machine, Rule};
use crate::op::TopicStats;
use crate::op::list::check_limit;
use crate::time::Now;
use crate::timeline::Timeline;
use crate::topic::{TopicName, TopicNo};

/// A page of topics in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics {
    /// After this one.
    pub after: Option<TopicName>,
    /// How many at most.
    pub limit: usize,
}

impl Topics {
    /// Whether the limit is one that a page may have.
    pub fn check(&self) -> Result<(), Error> {
        check_limit(self.limit)
    }
}

/// A page of topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicsPage {
    /// The topics and their counts.
    pub topics: Vec<(TopicName, TopicStats)>,
    /// There are more.
    pub more: bool,
}

operation! {
    Topics => TopicsPage,
        request => Command::Topics(request), Reply::Topics(reply) => Ok(reply);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn topics_page(&mut self, now: Now, page: &Topics) -> Rule<Reply> {
        page.check()?;
        let visible =
            |topic: &TopicNo| self.topics.get(*topic).is_some_and(|value| !value.is_vanished(now));
        let after = self.topics.after(page.after.as_ref()).filter(visible);
        let mut found: Vec<_> = after.take(page.limit + 1).collect();
        let more = found.len() > page.limit;
        found.truncate(page.limit);
        let mut topics = Vec::with_capacity(found.len());
        for topic in found {
            let Some(name) = self.topics.get(topic).map(|value| value.name.clone()) else {
                continue;
            };
            topics.push((name, self.topic_stats(now, topic)?));
        }
        Ok(Reply::Topics(TopicsPage { topics, more }))
    }
}
