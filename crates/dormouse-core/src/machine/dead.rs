//! Jobs that die: they rest as dead, or go on in another topic as dead letters.

use std::sync::Arc;

use bytes::Bytes;

use super::{Machine, Origin, Output};
use crate::error::{Error, Fatal};
use crate::fact::{Cause, Destination, Fact};
use crate::job::{Job, JobId, Progress};
use crate::limits::DEAD_REASON_BYTES_MAX;
use crate::op::{Put, PutRoom, RoomNeed, check};
use crate::place::Place;
use crate::time::Now;
use crate::timeline::Timeline;
use crate::topic::{TopicName, TopicNo};

/// A job that dies.
pub(crate) struct Death {
    /// The place it left; `None` = it was leased.
    pub(crate) left: Option<Place>,
    /// Where it would rest as dead.
    pub(crate) place: Place,
    pub(crate) progress: Progress,
    pub(crate) cause: Cause,
}

/// The headers of a dead letter, in their order. A letter that dies again has them already.
const DEAD_HEADERS: [&str; 5] =
    ["dead-from", "dead-reason", "dead-attempts", "dead-id", "dead-key"];

/// The key of the dead letter of a job: a job dies away once, so no two letters have it.
pub fn dead_letter_key(id: JobId) -> Bytes {
    Bytes::from(format!("dormouse:dead:{id}"))
}

/// The dead letter of a job: its body, headers, group and priority, and headers that say where it
/// comes from. The rest is as the topic says in which it is put.
pub fn dead_letter(from: &TopicName, to: TopicName, job: &Job, progress: &Progress) -> Put {
    let id = job.id;
    let reason = progress.error.as_ref().map(|error| String::from_utf8_lossy(error).into_owned());
    let mut headers = job.content.headers.as_deref().cloned().unwrap_or_default();
    // A letter that dies again tells of its last death.
    headers.retain(|(name, _)| !DEAD_HEADERS.contains(&name.as_str()));
    let key = job.key().and_then(|key| std::str::from_utf8(key).ok());
    let values = [
        Some(from.to_string()),
        Some(cut(reason.unwrap_or_default())),
        Some(progress.attempts.to_string()),
        Some(id.to_string()),
        key.map(str::to_owned),
    ];
    let told = DEAD_HEADERS.into_iter().zip(values);
    headers.extend(told.filter_map(|(name, value)| Some((name.to_owned(), value?))));
    Put {
        body_kind: job.content.body_kind,
        delay_ms: Some(0),
        priority: Some(progress.priority),
        key: Some(dead_letter_key(id)),
        headers: Some(Arc::new(headers)),
        group: job.content.group.clone(),
        ..Put::new(to, job.content.body.clone())
    }
}

/// As much of a reason as a header has room for.
fn cut(mut reason: String) -> String {
    let mut end = DEAD_REASON_BYTES_MAX.min(reason.len());
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason.truncate(end);
    reason
}

impl<T: Timeline> Machine<T> {
    /// A job dies. If its topic has a dead topic with room, a letter goes there in its place.
    pub(crate) fn die(
        &mut self,
        now: Now,
        death: Death,
        origin: Origin,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        let Death { left, place, progress, cause } = death;
        let (id, topic) = (place.id, place.topic);
        let letter = self.letter_of(id, topic, &progress, &origin);
        let to = if letter.is_some() { Destination::Gone } else { Destination::Rest(place) };
        self.commit(Fact::Move { id, topic, left, to, progress, key: None, cause }, origin, out);
        match letter {
            Some(letter) => {
                // There is room, so it is not refused; its key is free.
                let put = self.put_checked(now, letter, PutRoom::Checked, &mut 0, out);
                super::answered(put)?.map(drop).map_err(|error| Fatal::new(error.to_string()))
            }
            None => self.trim_dead(topic, now, &mut 2, out),
        }
    }

    /// The letter that a job of this topic becomes when it dies, if there is room for one.
    fn letter_of(
        &self,
        id: JobId,
        topic: TopicNo,
        progress: &Progress,
        origin: &Origin,
    ) -> Option<Put> {
        let value = self.topics.get(topic)?;
        let dead_topic = value.settings.dead_topic.as_ref()?;
        let leased;
        let job = match origin {
            Origin::Taken(resting) | Origin::Found(resting) => &resting.job,
            Origin::Live | Origin::Replay => {
                leased = self.leases.get(id)?.job.to_job(id);
                &leased
            }
        };
        let letter = dead_letter(&value.name, dead_topic.clone(), job, progress);
        let need = RoomNeed { jobs: 1, bytes: letter.bytes(), ..RoomNeed::default() };
        self.check_room_of(&letter.topic, need).ok()?;
        Some(letter)
    }

    /// Refuses a dead topic from which jobs would come back.
    pub(crate) fn check_dead_topic(
        &mut self,
        topic: &TopicName,
        dead_topic: Option<&TopicName>,
    ) -> Result<(), Error> {
        check::dead_topics(topic, dead_topic, |name| {
            let topic = self.topics.find(name)?;
            self.topics.get(topic)?.settings.dead_topic.clone()
        })
    }
}
