//! topics: a page of topic names.

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::limits::PORTION_ENTRIES;
use crate::machine::{LongCommand, Machine, Portion, PortionBudget, Rule};
use crate::op::TopicStats;
use crate::op::list::check_limit;
use crate::op::stats::TopicCount;
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
    /// The last topic that was passed.
    after: Option<TopicName>,
    /// The topic that is being counted.
    present: Option<(TopicName, TopicCount)>,
}

/// The result of looking for the next topic.
struct NextTopic {
    visible: Option<TopicNo>,
    /// The last one that was passed, the visible one included.
    passed: Option<TopicNo>,
    /// There are no more.
    is_last: bool,
}

impl<T: Timeline> Machine<T> {
    #[expect(clippy::unused_self, reason = "every command begins with a method of the machine")]
    pub(crate) fn topics_page(&mut self, page: Topics) -> Rule<LongCommand> {
        page.check()?;
        let after = page.after.clone();
        Ok(LongCommand::Topics(Box::new(TopicsProgress {
            page,
            found: Vec::new(),
            after,
            present: None,
        })))
    }

    pub(crate) fn topics_portion(
        &mut self,
        now: Now,
        mut progress: TopicsProgress,
    ) -> Rule<Portion> {
        let mut budget = PortionBudget::new();
        let mut passed = 0;
        while budget.is_left() && passed < PORTION_ENTRIES {
            if let Some((name, mut count)) = progress.present.take() {
                if self.count_topic(now, &mut count, &mut budget)? {
                    progress.found.push((name, self.topic_stats(now, &count)));
                } else {
                    progress.present = Some((name, count));
                    break;
                }
            }
            let next = self.next_topic(now, progress.after.as_ref(), &mut passed);
            let more = next.visible.is_some() && progress.found.len() >= progress.page.limit;
            if next.is_last || more {
                let topics = progress.found;
                return Ok(Portion::Done(Reply::Topics(TopicsPage { topics, more })));
            }
            let name = |topic: TopicNo| self.topics.get(topic).map(|value| value.name.clone());
            progress.after = next.passed.and_then(name).or(progress.after);
            let count = |topic| Some((name(topic)?, TopicCount::new(topic)));
            progress.present = next.visible.and_then(count);
        }
        Ok(Portion::More(LongCommand::Topics(Box::new(progress))))
    }

    /// The next topic that callers see. Those that have vanished for them may be many.
    fn next_topic(&self, now: Now, after: Option<&TopicName>, passed: &mut usize) -> NextTopic {
        let mut topics = self.topics.after(after);
        let mut next = NextTopic { visible: None, passed: None, is_last: false };
        while *passed < PORTION_ENTRIES {
            let Some(topic) = topics.next() else {
                next.is_last = true;
                break;
            };
            *passed += 1;
            next.passed = Some(topic);
            if self.topics.get(topic).is_some_and(|value| !value.is_vanished(now)) {
                next.visible = Some(topic);
                break;
            }
        }
        next
    }
}
