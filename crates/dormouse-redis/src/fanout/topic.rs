//! Commands on whole topics: kick, revive, purge, settings, pause.

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::event::EventKind;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Kick, PauseTopic, ReviveTopic, SetTopic};
use dormouse_core::topic::TopicName;

use super::{Fanout, pause_ms};
use crate::codec::kick::{self, Portion};
use crate::codec::{pause, purge, revive, stats};
use crate::events::EventDetails;
use crate::partition::{BATCH_JOBS_MAX, Effect, PartitionRequest};
use crate::wire::{Op, Reader};

impl Fanout<'_> {
    pub(super) async fn kick(self, kick: &Kick) -> Answer {
        self.portions(&kick.topic, kick.max, kick::op, kick::read).await
    }

    pub(super) async fn revive_topic(self, revive: &ReviveTopic) -> Answer {
        self.portions(&revive.topic, revive.max, revive::op_oldest, revive::read_oldest).await
    }

    /// Runs an operation on up to `max` jobs, in portions that one script can do.
    async fn portions(
        self,
        topic: &TopicName,
        max: usize,
        op: fn(usize) -> Op,
        read: fn(&mut Reader<'_>) -> Result<Portion, Error>,
    ) -> Answer {
        let mut left = max.min(BATCH_MAX);
        for partition in self.partitions(topic) {
            while left > 0 {
                let wanted = left.min(BATCH_JOBS_MAX);
                let portion = self.ask(&partition, Effect::Change, op(wanted), read).await?;
                let done = usize::try_from(portion.count).unwrap_or(usize::MAX);
                left = left.saturating_sub(done);
                if done < wanted && !portion.more {
                    break;
                }
            }
        }
        Ok(Reply::Count((max.min(BATCH_MAX) - left) as u64))
    }

    pub(super) async fn purge(self, name: &TopicName) -> Answer {
        let mut removed = 0;
        for partition in self.partitions(name) {
            let mut rest: Option<Bytes> = None;
            loop {
                let op = purge::op(rest);
                let purged = self.ask(&partition, Effect::Change, op, purge::read).await?;
                removed += purged.removed;
                rest = purged.cursor;
                if rest.is_none() {
                    break;
                }
            }
        }
        if removed > 0 {
            self.emit_topic(name, EventKind::Purged);
        }
        Ok(Reply::Count(removed))
    }

    /// Sets the settings in all partitions, and removes dead jobs beyond the new limits.
    pub(super) async fn set_topic(self, set: SetTopic) -> Answer {
        set.check()?;
        let mut pending = Vec::new();
        for partition in self.partitions(&set.topic) {
            let settings = set.settings.clone();
            let request = |reply_to| PartitionRequest::Configure { settings, reply_to };
            let answer = self.submit(&partition, request);
            pending.push((partition, answer));
        }
        for (partition, answer) in pending {
            answer.await?;
            while self.ask(&partition, Effect::Read, stats::op(), stats::read).await?.more {}
        }
        self.emit_topic(&set.topic, EventKind::TopicSet);
        Ok(Reply::Done)
    }

    pub(super) async fn pause(self, pause: &PauseTopic) -> Answer {
        let for_ms = pause_ms(pause)?;
        self.everywhere(&pause.topic, || pause::op(for_ms), EventKind::Paused).await
    }

    pub(super) async fn resume(self, name: &TopicName) -> Answer {
        self.everywhere(name, pause::op_resume, EventKind::Resumed).await
    }

    async fn everywhere(self, name: &TopicName, op: impl Fn() -> Op, kind: EventKind) -> Answer {
        for partition in self.partitions(name) {
            self.submit_op(&partition, Effect::Change, op()).await?;
        }
        self.emit_topic(name, kind);
        Ok(Reply::Done)
    }

    fn emit_topic(self, topic: &TopicName, kind: EventKind) {
        self.emit(topic, EventDetails { kind, id: None, due_at: None, attempt: 0 });
    }
}
