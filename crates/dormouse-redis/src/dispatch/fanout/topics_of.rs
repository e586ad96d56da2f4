//! topics_of: the topics of jobs. An id leads to its topic, so Redis is asked about nothing but
//! shards that this server has not met yet.

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::job::JobId;
use dormouse_core::op::{Target, check};
use dormouse_core::refusal::no_job;

use super::Fanout;

impl Fanout<'_> {
    pub(super) fn topics_of(self, ids: &[JobId]) -> Answer {
        check::batch(ids.len())?;
        let topic_of = |id: &JobId| self.topic_of(*id).ok_or_else(|| no_job(&Target::Id(*id)));
        Ok(Reply::TopicsOf(ids.iter().map(topic_of).collect()))
    }
}
