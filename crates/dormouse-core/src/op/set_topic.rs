//! set_topic: change a topic's settings, all at once.

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::fact::Fact;
use crate::limits::{LEASED_JOBS_MAX, TTL_MS_MAX, TTR_MS_MIN};
use crate::machine::{Machine, Origin, Output, Rule};
use crate::op::check;
use crate::timeline::Timeline;
use crate::topic::{Settings, TopicName};

/// Replace a topic's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetTopic {
    /// The topic.
    pub topic: TopicName,
    /// All settings; an empty one unsets everything.
    pub settings: Settings,
}

impl SetTopic {
    /// Checks all limits.
    pub fn check(&self) -> Result<(), Error> {
        let settings = &self.settings;
        let span = |field, value_ms: Option<u64>, min_ms| match value_ms {
            None => Ok(()),
            Some(ms) => {
                let ms = i64::try_from(ms).unwrap_or(i64::MAX);
                check::span(field, ms, min_ms, TTL_MS_MAX).map(drop)
            }
        };
        span("ttr", settings.ttr_ms, TTR_MS_MIN)?;
        span("dead_ttl", settings.dead_ttl_ms, 0)?;
        span("delay", settings.delay_ms, 0)?;
        span("expires_after", settings.expires_after_ms, 1)?;
        span("keep_done", settings.keep_done_ms, 1)?;
        slots("leased_max", settings.leased_max)?;
        slots("group_leased_max", settings.group_leased_max)?;
        for (field, rate) in [("rate", settings.rate), ("group_rate", settings.group_rate)] {
            rate.map_or(Ok(()), |rate| rate.check(field))?;
        }
        check::optional_backoff(settings.backoff.as_ref())
    }
}

/// A number of leases within its limits.
fn slots(field: &str, value: Option<u64>) -> Result<(), Error> {
    match value {
        Some(jobs) if !(1..=LEASED_JOBS_MAX as u64).contains(&jobs) => Err(Error::invalid(
            format!("{field} is {jobs} jobs; give 1 to {LEASED_JOBS_MAX}, or pause the topic"),
        )),
        _ => Ok(()),
    }
}

operation! {
    SetTopic => (),
        request => Command::SetTopic(Box::new(request)), Reply::Done => Ok(());
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn set_topic(&mut self, set: SetTopic, out: &mut Output) -> Rule<Reply> {
        set.check()?;
        self.check_dead_topic(&set.topic, set.settings.dead_topic.as_ref())?;
        let mut settings = set.settings;
        let known = self.topics.find(&set.topic).and_then(|topic| self.topics.get(topic));
        settings.push = known.and_then(|value| value.settings.push.clone());
        let unchanged = match known {
            Some(value) => value.settings == settings,
            None => settings == Settings::default(),
        };
        if unchanged {
            return Ok(Reply::Done);
        }
        let topic = self.topic_or_birth(&set.topic, out)?;
        self.commit(Fact::TopicSet { topic, settings }, Origin::Live, out);
        self.plan_trim(topic);
        Ok(Reply::Done)
    }
}
