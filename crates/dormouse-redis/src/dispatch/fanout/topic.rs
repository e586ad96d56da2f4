//! Commands on whole topics: kick, revive, purge, settings, pause.

use std::collections::HashMap;

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::event::EventKind;
use dormouse_core::job::State;
use dormouse_core::limits::{BATCH_MAX, DEAD_TOPICS_MAX};
use dormouse_core::op::{Kick, PauseTopic, Purge, ReleaseTopic, ReviveTopic, SetTopic, check};
use dormouse_core::topic::{Settings, TopicName};

use super::query::state_code;
use super::{Fanout, pause_ms, stats};
use crate::codec::unknown_priority;
use crate::events::EventDetails;
use crate::partition::{Effect, PartitionRequest, SettingsChange};
use crate::scheduler::BATCH_JOBS_MAX;
use crate::wire::{Op, Reader, codes, flow, malformed, number};

/// The part of a request that one script call has done: it changes a bounded number of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Portion {
    count: u64,
    /// Another call will change more.
    more: bool,
}

fn read_kicked(reply: &mut Reader<'_>) -> Result<Portion, Error> {
    Ok(Portion { count: u64::from(reply.u32()?), more: reply.u8()? == 1 })
}

fn read_revived(reply: &mut Reader<'_>) -> Result<Portion, Error> {
    let (count, end, _priority) = (u64::from(reply.u32()?), reply.u8()?, reply.u32()?);
    match end {
        codes::REVIVE_END | codes::REVIVE_MORE => {
            Ok(Portion { count, more: end == codes::REVIVE_MORE })
        }
        codes::REVIVE_UNKNOWN_PRIORITY => Err(unknown_priority()),
        _ => Err(malformed("unknown result of a revive")),
    }
}

/// The part of a purge that one script call has done.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PurgeProgress {
    removed: u64,
    /// Where the next call continues; `None` = nothing is left.
    cursor: Option<Bytes>,
}

fn read_purged(reply: &mut Reader<'_>) -> Result<PurgeProgress, Error> {
    let (removed, more) = (reply.u64()?, reply.u8()? == 1);
    let cursor = Bytes::copy_from_slice(reply.rest());
    Ok(PurgeProgress { removed, cursor: more.then_some(cursor) })
}

impl Fanout<'_> {
    pub(super) async fn kick(self, kick: &Kick) -> Answer {
        self.portions(&kick.topic, kick.max, "kicked", "kick", read_kicked).await
    }

    pub(super) async fn release_topic(self, release: &ReleaseTopic) -> Answer {
        self.portions(&release.topic, release.max, "released", "release_topic", read_kicked).await
    }

    pub(super) async fn revive_topic(self, revive: &ReviveTopic) -> Answer {
        self.portions(&revive.topic, revive.max, "revived", "revive_topic", read_revived).await
    }

    /// Runs an operation on up to `max` jobs, in portions that one script can do.
    async fn portions(
        self,
        topic: &TopicName,
        max: usize,
        done: &str,
        verb: &'static str,
        read: fn(&mut Reader<'_>) -> Result<Portion, Error>,
    ) -> Answer {
        let (mut left, mut all_confirmed) = (max.min(BATCH_MAX), true);
        for partition in self.partitions(topic) {
            while left > 0 {
                let wanted = left.min(BATCH_JOBS_MAX);
                let op = Op::new(verb, vec![number(wanted as u64)]);
                let (portion, confirmed) = self.ask_change(&partition, op, read).await?;
                let done = usize::try_from(portion.count).unwrap_or(usize::MAX);
                all_confirmed &= confirmed || done == 0;
                left = left.saturating_sub(done);
                if done < wanted && !portion.more {
                    break;
                }
            }
        }
        let count = (max.min(BATCH_MAX) - left) as u64;
        self.if_confirmed(all_confirmed, Reply::Count(count), format!("{count} jobs were {done}"))
    }

    /// Counted first if there is a limit; jobs that are put after that do not let more go than it
    /// says.
    pub(super) async fn purge(self, purge: &Purge) -> Answer {
        purge.check()?;
        let name = &purge.topic;
        if purge.at_most.is_some() {
            purge.check_count(self.count_purged(purge).await?)?;
        }
        let state = purge.state.map(|state| number(u64::from(state_code(state))));
        let (mut removed, mut all_confirmed) = (0, true);
        for partition in self.partitions(name) {
            let mut rest: Option<Bytes> = None;
            loop {
                let left = purge.at_most.map(|at_most| number(at_most.saturating_sub(removed)));
                let args = [rest, state.clone(), left];
                let op = Op::new("purge", args.map(Option::unwrap_or_default).to_vec());
                let (purged, confirmed) = self.ask_change(&partition, op, read_purged).await?;
                all_confirmed &= confirmed || purged.removed == 0;
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
        let done = format!("{removed} jobs were purged");
        self.if_confirmed(all_confirmed, Reply::Count(removed), done)
    }

    /// How many jobs a purge would remove.
    async fn count_purged(self, purge: &Purge) -> Result<u64, Error> {
        let mut count = 0;
        for partition in self.partitions(&purge.topic) {
            let found = loop {
                let found = self.ask(&partition, stats::op(), stats::read).await?;
                if !found.more {
                    break found;
                }
            };
            count += match purge.state {
                None => found.counts.waiting + found.counts.dead,
                Some(State::Delayed) => found.delayed,
                Some(State::Ready) => found.ready,
                Some(State::Dead) => found.counts.dead,
                Some(State::Done) => found.counts.done,
                Some(State::Leased) => 0,
            };
        }
        Ok(count)
    }

    /// Refuses a dead topic from which jobs would come back. Two servers that set two topics at the
    /// same time may miss it.
    async fn check_dead_topic(self, set: &SetTopic) -> Result<(), Error> {
        let mut known: HashMap<TopicName, Option<TopicName>> = HashMap::new();
        let mut next = set.settings.dead_topic.clone();
        while let Some(name) = next.take()
            && known.len() < DEAD_TOPICS_MAX
            && !known.contains_key(&name)
        {
            next = self.dead_topic_of(&name).await?;
            known.insert(name, next.clone());
        }
        let after = |name: &TopicName| known.get(name).cloned().flatten();
        check::dead_topics(&set.topic, set.settings.dead_topic.as_ref(), after)
    }

    async fn dead_topic_of(self, name: &TopicName) -> Result<Option<TopicName>, Error> {
        let topic = self.dispatcher.find(name).await?;
        let Some(partition) = topic.as_ref().and_then(|topic| topic.partitions.first()) else {
            return Ok(None);
        };
        // The configuration is the present one after any script.
        self.ask(partition, stats::op(), stats::read).await?;
        Ok(partition.config.borrow().settings.dead_topic.clone())
    }

    /// Sets the settings in all partitions, and removes dead and done jobs beyond the new limits.
    pub(super) async fn set_topic(self, set: SetTopic) -> Answer {
        set.check()?;
        flow::check(&set.settings, self.partition_count(&set.topic))?;
        self.check_dead_topic(&set).await?;
        let Settings { dead_topic, keep_done_ms, expires_after_ms, .. } = &set.settings;
        if dead_topic.is_some() || keep_done_ms.is_some() || expires_after_ms.is_some() {
            // Before it is so, so that other servers look after it whatever happens.
            self.dispatcher.register_ticking(&set.topic).await?;
        }
        let mut pending = Vec::new();
        for partition in self.partitions(&set.topic) {
            let change = SettingsChange::Set(set.settings.clone());
            let request = |reply_to| PartitionRequest::Configure { change, reply_to };
            let answer = self.submit(&partition, request);
            pending.push((partition, answer));
        }
        let mut all_confirmed = true;
        for (partition, answer) in pending {
            all_confirmed &= answer.await?;
            while self.ask(&partition, stats::op(), stats::read).await?.more {}
            partition.watch_ticks();
        }
        self.emit_topic(&set.topic, EventKind::TopicSet);
        self.if_confirmed(all_confirmed, Reply::Done, "the topic was set")
    }

    pub(super) async fn pause(self, pause: &PauseTopic) -> Answer {
        let for_ms = pause_ms(pause)?;
        let until = for_ms.map_or(Bytes::from_static(b"i"), number);
        self.everywhere(&pause.topic, &until, EventKind::Paused).await
    }

    pub(super) async fn resume(self, name: &TopicName) -> Answer {
        self.everywhere(name, &Bytes::new(), EventKind::Resumed).await
    }

    /// Sets the end of the pause: a number of ms, `i` = until resumed, empty = now.
    async fn everywhere(self, name: &TopicName, until: &Bytes, kind: EventKind) -> Answer {
        let mut all_confirmed = true;
        for partition in self.partitions(name) {
            let op = Op::new("pause", vec![until.clone()]);
            all_confirmed &= self.submit_op(&partition, Effect::Change, op).await?.confirmed;
        }
        self.emit_topic(name, kind);
        self.if_confirmed(all_confirmed, Reply::Done, "the topic was paused or resumed")
    }

    pub(super) fn emit_topic(self, topic: &TopicName, kind: EventKind) {
        self.emit(topic, EventDetails { kind, id: None, due_at: None, attempt: 0 });
    }
}
