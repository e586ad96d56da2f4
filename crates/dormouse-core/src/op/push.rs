//! set_push and get_push: how a topic's jobs are pushed. Who pushes them is not known here.

use std::sync::Arc;

use bytes::Bytes;

use crate::command::{Command, Reply, operation};
use crate::error::{Code, Error};
use crate::fact::Fact;
use crate::limits::{LEASED_JOBS_MAX, PUSH_RECORD_BYTES_MAX, PUSHES_MAX};
use crate::machine::{Machine, Origin, Output, Rule};
use crate::refusal::{push_conflict, too_many_pushes};
use crate::timeline::Timeline;
use crate::topic::{Push, TopicName};

/// Change how a topic's jobs are pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetPush {
    /// The topic.
    pub topic: TopicName,
    /// `None` = they are not pushed any more.
    pub push: Option<NewPush>,
    /// Only if the present push has this version; 0 = only if there is none.
    pub if_version: Option<u64>,
}

/// A push that has no version yet.
#[derive(Clone, PartialEq, Eq)]
pub struct NewPush {
    /// Most jobs of the topic leased at once.
    pub concurrency: u64,
    /// Nothing is pushed until somebody resumes it.
    pub is_disabled: bool,
    /// Everything else, as the server that pushes knows it.
    pub record: Bytes,
}

/// How a topic's jobs are pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetPush(pub TopicName);

operation! {
    SetPush => Option<Arc<Push>>,
        request => Command::SetPush(Box::new(request)), Reply::Push(push) => Ok(push);
    GetPush => Option<Arc<Push>>,
        GetPush(topic) => Command::GetPush(topic), Reply::Push(push) => Ok(push);
}

impl std::fmt::Debug for NewPush {
    /// The record may hold passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.clone().numbered(0).fmt(f)
    }
}

impl NewPush {
    /// The push with its version.
    pub fn numbered(self, version: u64) -> Push {
        let NewPush { concurrency, is_disabled, record } = self;
        Push { version, concurrency, is_disabled, record }
    }
}

impl SetPush {
    /// Checks all limits.
    pub fn check(&self) -> Result<(), Error> {
        let Some(push) = &self.push else { return Ok(()) };
        let (max, jobs) = (LEASED_JOBS_MAX as u64, push.concurrency);
        if !(1..=max).contains(&jobs) {
            return Err(Error::invalid(format!("concurrency is {jobs} jobs; give 1 to {max}")));
        }
        let bytes = push.record.len();
        if bytes > PUSH_RECORD_BYTES_MAX {
            let text =
                format!("the push takes {bytes} bytes; give at most {PUSH_RECORD_BYTES_MAX}");
            return Err(Error::new(Code::TooLarge, text));
        }
        Ok(())
    }
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn set_push(&mut self, set: SetPush, out: &mut Output) -> Rule<Reply> {
        set.check()?;
        let present = self.push_of(&set.topic);
        let version = present.as_ref().map_or(0, |push| push.version);
        if let Some(expected) = set.if_version.filter(|expected| *expected != version) {
            return Err(push_conflict(&set.topic, expected, version).into());
        }
        let wanted = set.push.map(|push| push.numbered(version));
        if wanted.as_ref() == present.as_deref() {
            return Ok(Reply::Push(present));
        }
        if present.is_none() && self.topics.pushed_len() >= PUSHES_MAX {
            return Err(too_many_pushes().into());
        }
        let topic = self.topic_or_birth(&set.topic, out)?;
        // Fences grow, over restarts, too: one that was removed never comes again with a version
        // that it had.
        let version = self.next_fence();
        let push = wanted.map(|push| Arc::new(Push { version, ..push }));
        self.commit(Fact::PushSet { topic, push: push.clone() }, Origin::Live, out);
        Ok(Reply::Push(push))
    }

    pub(crate) fn get_push(&mut self, topic: &TopicName) -> Reply {
        Reply::Push(self.push_of(topic))
    }

    fn push_of(&mut self, topic: &TopicName) -> Option<Arc<Push>> {
        let topic = self.topics.find(topic)?;
        self.topics.get(topic)?.settings.push.clone()
    }
}
