//! What a partition does when Redis has lost its data, or the topic was registered anew; see
//! `dispatch/register.rs`.

use std::time::Duration;

use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::topic::{Settings, TopicName};

use super::batch::EncodedBatch;
use super::decode::BatchStatus;
use super::{Partition, PartitionRequest, ReplyTo, SettingsChange};
use crate::clock;
use crate::limits::NUMBER_MAX;
use crate::wire::config::Config;

/// For so long a look at the register counts, before a partition's first configuration.
const REGISTRATION_TTL: Duration = Duration::from_secs(1);

impl Partition {
    /// Goes on after a reply. If Redis has lost the partition, its topic is registered again first:
    /// until then every batch is refused, because it names another configuration.
    pub(super) async fn restored(&self, status: BatchStatus) -> Result<BatchStatus, Error> {
        match (status, &self.topic) {
            (BatchStatus::DataLost, Some(topic)) => {
                let restored = self.shared.restore(topic.clone()).await;
                restored.map(|()| BatchStatus::Retry)
            }
            (BatchStatus::Foreign, Some(topic)) => {
                let confirmed = self.shared.confirm(topic.clone()).await;
                Err(confirmed.err().unwrap_or_else(|| used_otherwise(topic)))
            }
            (status, _) => Ok(status),
        }
    }

    /// Before the first configuration is written: if Redis has lost its data, nothing tells so.
    pub(super) async fn confirm_registration(&self, encoded: &EncodedBatch) -> Result<(), Error> {
        let is_first = encoded.config.is_some() && self.config.borrow().version == 0;
        let is_recent = || self.registered_at.get().elapsed() < REGISTRATION_TTL;
        if self.is_void.get() {
            return Err(registered_anew());
        }
        if let Some(topic) = self.topic.as_ref().filter(|_| is_first && !is_recent()) {
            self.shared.confirm(topic.clone()).await?;
            self.registered_at.set(clock::instant());
        }
        Ok(())
    }

    /// Notes the number of a job.
    pub(crate) fn note_number(&self, id: JobId) {
        self.last_number.set(self.last_number.get().max(id.0 & NUMBER_MAX));
    }

    /// Redis has lost the data, here or elsewhere, and the topic is registered again. What is left
    /// of the partition's configuration are the settings, which are written back.
    pub(crate) fn reset(&self) {
        let Config { settings, push_version, .. } = self.config.borrow().clone();
        let has_settings = settings != Settings::default();
        *self.config.borrow_mut() =
            Config { settings: settings.clone(), push_version, ..Config::default() };
        self.registered_at.set(clock::instant());
        if has_settings {
            let (change, reply_to) = (SettingsChange::Restore(settings), ReplyTo::Discard);
            self.submit(None, PartitionRequest::Configure { change, reply_to });
        }
    }

    /// The topic has other shards: everything that waits here is answered, and comes again.
    pub(crate) fn make_void(&self) {
        self.is_void.set(true);
        let waiters = self.shared.schedule(|scheduler, _| scheduler.waiters_at(self.no));
        self.fail_waiters(waiters, &registered_anew());
        self.wake.notify_one();
    }
}

pub(crate) fn registered_anew() -> Error {
    Error::unavailable("Redis has lost its data, and the topic is registered anew; try again")
}

/// Who knows which jobs are meant by the ids of this partition?
fn used_otherwise(topic: &TopicName) -> Error {
    Error::unavailable(format!(
        "Redis has lost its register of topics: topic {topic} has jobs under another shard than \
         is registered now; run `dormouse verify --mend`"
    ))
}
