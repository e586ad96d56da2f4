//! reserve: the request and the leased jobs.

use dormouse_core::limits::RESERVE_TOPICS_MAX;
use dormouse_core::op::{LeasedJob, Reserve};
use dormouse_core::topic::TopicName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Bounded, LeasedOut, TopicText};
use crate::http::problem::Problem;
use crate::units::SpanMs;

/// Take jobs of the topic in the path.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReserveTopic)]
pub(crate) struct ReserveTopicForm {
    /// The largest number of jobs.
    #[schema(default = 1, minimum = 1, maximum = 4096)]
    max: Option<usize>,
    /// How long to wait for the first job, at most 60 s.
    wait: Option<SpanMs>,
    /// The duration of the leases; default: each job's own.
    ttr: Option<SpanMs>,
}

/// Take jobs of several topics.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Reserve)]
pub(crate) struct ReserveForm {
    /// From these topics.
    #[schema(value_type = Vec<TopicText>, min_items = 1, max_items = 1000)]
    topics: Bounded<String, RESERVE_TOPICS_MAX>,
    /// The largest number of jobs.
    #[schema(default = 1, minimum = 1, maximum = 4096)]
    max: Option<usize>,
    /// How long to wait for the first job, at most 60 s.
    wait: Option<SpanMs>,
    /// The duration of the leases; default: each job's own.
    ttr: Option<SpanMs>,
}

impl ReserveTopicForm {
    pub(crate) fn into_reserve(self, topics: Vec<TopicName>) -> Reserve {
        Reserve {
            topics,
            max: self.max.unwrap_or(1),
            wait_ms: self.wait.map_or(0, |wait| wait.0),
            ttr_ms: self.ttr.map(|ttr| ttr.0),
            session: None,
        }
    }
}

impl ReserveForm {
    pub(crate) fn into_reserve(self) -> Result<Reserve, Problem> {
        let topics: Result<_, _> = self.topics.0.iter().map(|name| TopicName::new(name)).collect();
        let rest = ReserveTopicForm { max: self.max, wait: self.wait, ttr: self.ttr };
        Ok(rest.into_reserve(topics?))
    }
}

/// Jobs that are leased to the client.
#[derive(Serialize, ToSchema)]
#[schema(as = LeasedJobs)]
pub(crate) struct JobsOut<'a> {
    jobs: Vec<LeasedOut<'a>>,
}

impl<'a> JobsOut<'a> {
    pub(crate) fn new(jobs: &'a [LeasedJob]) -> JobsOut<'a> {
        JobsOut { jobs: jobs.iter().map(LeasedOut::from).collect() }
    }
}
