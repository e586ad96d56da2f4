//! topics: a page of topic names.

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::limits::PORTION_TOPICS;
use crate::machine::{LongCommand, Machine, Portion, Rule};
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

/// A page of topics between two portions.
#[derive(Debug)]
pub(crate) struct TopicsProgress {
    page: Topics,
    found: Vec<(TopicName, TopicStats)>,
}

impl<T: Timeline> Machine<T> {
    #[expect(clippy::unused_self, reason = "every command begins with a method of the machine")]
    pub(crate) fn topics_page(&mut self, page: Topics) -> Rule<LongCommand> {
        page.check()?;
        Ok(LongCommand::Topics(TopicsProgress { page, found: Vec::new() }))
    }

    pub(crate) fn topics_portion(
        &mut self,
        now: Now,
        mut progress: TopicsProgress,
    ) -> Rule<Portion> {
        let visible =
            |topic: &TopicNo| self.topics.get(*topic).is_some_and(|value| !value.is_vanished(now));
        let last = progress.found.last().map(|(name, _)| name);
        let after = self.topics.after(last.or(progress.page.after.as_ref())).filter(visible);
        let left = progress.page.limit - progress.found.len();
        let mut numbers: Vec<_> = after.take(left.min(PORTION_TOPICS) + 1).collect();
        let more = numbers.len() > left.min(PORTION_TOPICS);
        numbers.truncate(left.min(PORTION_TOPICS));
        for topic in numbers {
            let Some(name) = self.topics.get(topic).map(|value| value.name.clone()) else {
                continue;
            };
            progress.found.push((name, self.topic_stats(now, topic)?));
        }
        if more && progress.found.len() < progress.page.limit {
            return Ok(Portion::More(LongCommand::Topics(progress)));
        }
        Ok(Portion::Done(Reply::Topics(TopicsPage { topics: progress.found, more })))
    }
}
