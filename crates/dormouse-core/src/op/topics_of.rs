//! topics_of: the topics of jobs, without the jobs themselves.
//!
//! A server asks it before a command that names jobs by id or token, because rights are rights on
//! topics. Nothing of a job but its place is read, so that the question costs the same whatever
//! the jobs weigh.

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::job::JobId;
use crate::machine::{BatchProgress, LongCommand, Machine, Portion, Rule};
use crate::op::Target;
use crate::refusal::no_job;
use crate::timeline::Timeline;
use crate::topic::TopicName;

/// The topics of jobs.
///
/// A job that is not there is `not_found`. A backend whose ids lead to topics may name the topic
/// instead: no job of this id was or will be in another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicsOf(pub Vec<JobId>);

operation! {
    TopicsOf => Vec<Result<TopicName, Error>>,
        TopicsOf(ids) => Command::TopicsOf(ids), Reply::TopicsOf(replies) => Ok(replies);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn topics_of_portion(
        &mut self,
        mut batch: BatchProgress<JobId, TopicName>,
    ) -> Rule<Portion> {
        self.batch_portion(&mut batch, |machine, id, _| machine.topic_of(id))?;
        Ok(batch.into_portion(Reply::TopicsOf, LongCommand::TopicsOf))
    }

    fn topic_of(&mut self, id: JobId) -> Rule<TopicName> {
        let topic = match self.leases.get(id) {
            Some(lease) => Some(lease.topic),
            None => self.timeline.place_of(id)?.map(|place| place.topic),
        };
        let topic = topic.and_then(|topic| self.topics.get(topic));
        topic.map(|topic| topic.name.clone()).ok_or_else(|| no_job(&Target::Id(id)).into())
    }
}
