//! set_push, get_push and pushes: the list beside the register decides; the partitions are told how
//! many jobs may be leased, and that jobs have the backoff of pushes.

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::event::EventKind;
use dormouse_core::op::{Pushes, SetPush, check_limit};
use dormouse_core::topic::{Push, TopicName};

use super::Fanout;
use crate::dispatch::pushes::PushChange;
use crate::partition::{PartitionRequest, SettingsChange};
use crate::wire::flow;

impl Fanout<'_> {
    pub(super) async fn set_push(self, set: &SetPush) -> Answer {
        set.check()?;
        if let Some(push) = &set.push {
            let partitions = self.partition_count(&set.topic);
            flow::check_share("concurrency", push.concurrency, partitions)?;
        }
        let PushChange { before, after, version } = self.dispatcher.set_push(set).await?;
        // Partitions take what is newer than what they have, in whatever order servers write it.
        // They are told even if nothing changed: the server that changed it may have died before.
        let short = |push: &Arc<Push>| Arc::new(Push { record: Bytes::new(), ..(**push).clone() });
        let short = after.as_ref().map(short);
        let (mut all_confirmed, mut failure) = (true, None);
        for partition in self.partitions(&set.topic) {
            let change = SettingsChange::Push { push: short.clone(), version };
            let request = |reply_to| PartitionRequest::Configure { change, reply_to };
            match self.submit(&partition, request).await {
                Ok(is_confirmed) => all_confirmed &= is_confirmed,
                // The others are told nevertheless; who asks again reaches this one.
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if before != after {
            self.emit_topic(&set.topic, EventKind::of_push(after.as_deref()));
        }
        if let Some(error) = failure {
            return Err(error);
        }
        self.if_confirmed(all_confirmed, Reply::Push(after), "the push was set")
    }

    pub(super) async fn get_push(self, topic: &TopicName) -> Answer {
        Ok(Reply::Push(self.dispatcher.push_of(topic).await?))
    }

    pub(super) async fn pushes(self, page: &Pushes) -> Answer {
        check_limit(page.limit)?;
        Ok(Reply::Pushes(self.dispatcher.pushes_page(page).await?))
    }
}
