//! Commands on whole topics: kick, revive, purge, settings, pause.

use std::rc::Rc;

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::event::EventKind;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Kick, PauseTopic, ReviveTopic, SetTopic};
use dormouse_core::topic::TopicName;

use super::{pause_ms, run_op, submit};
use crate::codec::kick::{self, Portion};
use crate::codec::{pause, purge, revive, stats};
use crate::dispatch::Dispatcher;
use crate::events::{self, EventDetails};
use crate::partition::{BATCH_JOBS_MAX, Effect, Partition, PartitionRequest, SubmissionNo};
use crate::wire::{Op, Reader};

/// The partitions of a topic; none if it is unknown.
pub(super) fn partitions(dispatcher: &Dispatcher, name: &TopicName) -> Vec<Rc<Partition>> {
    dispatcher.known(name).map(|topic| topic.partitions.clone()).unwrap_or_default()
}

pub(super) async fn kick(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    kick: &Kick,
) -> Answer {
    let partitions = partitions(dispatcher, &kick.topic);
    portions(submission, &partitions, kick.max, kick::op, kick::read).await
}

pub(super) async fn revive(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    revive: &ReviveTopic,
) -> Answer {
    let partitions = partitions(dispatcher, &revive.topic);
    portions(submission, &partitions, revive.max, revive::op_oldest, revive::read_oldest).await
}

/// Runs an operation on up to `max` jobs, in portions that one script can do.
async fn portions(
    submission: SubmissionNo,
    partitions: &[Rc<Partition>],
    max: usize,
    op: fn(usize) -> Op,
    read: fn(&mut Reader<'_>) -> Result<Portion, Error>,
) -> Answer {
    let mut left = max.min(BATCH_MAX);
    for partition in partitions {
        while left > 0 {
            let wanted = left.min(BATCH_JOBS_MAX);
            let raw = run_op(partition, submission, Effect::Change, op(wanted)).await?;
            let portion = read(&mut Reader::new(&raw.answer))?;
            let done = usize::try_from(portion.count).unwrap_or(usize::MAX);
            left = left.saturating_sub(done);
            if done < wanted && !portion.more {
                break;
            }
        }
    }
    Ok(Reply::Count((max.min(BATCH_MAX) - left) as u64))
}

pub(super) async fn purge(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    name: &TopicName,
) -> Answer {
    let mut removed = 0;
    for partition in partitions(dispatcher, name) {
        let mut rest: Option<Bytes> = None;
        loop {
            let op = purge::op(rest);
            let raw = run_op(&partition, submission, Effect::Change, op).await?;
            let purged = purge::read(&mut Reader::new(&raw.answer))?;
            removed += purged.removed;
            rest = purged.cursor;
            if rest.is_none() {
                break;
            }
        }
    }
    if removed > 0 {
        emit(dispatcher, name, EventKind::Purged);
    }
    Ok(Reply::Count(removed))
}

/// Sets the settings in all partitions, and removes dead jobs beyond the new limits.
pub(super) async fn set(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    set: SetTopic,
) -> Answer {
    set.check()?;
    let mut pending = Vec::new();
    for partition in partitions(dispatcher, &set.topic) {
        let settings = set.settings.clone();
        let answer = submit(&partition, submission, |reply_to| PartitionRequest::Configure {
            settings,
            reply_to,
        });
        pending.push((partition, answer));
    }
    for (partition, answer) in pending {
        answer.await?;
        loop {
            let raw = run_op(&partition, submission, Effect::Read, stats::op()).await?;
            if !stats::read(&mut Reader::new(&raw.answer))?.more {
                break;
            }
        }
    }
    emit(dispatcher, &set.topic, EventKind::TopicSet);
    Ok(Reply::Done)
}

pub(super) async fn pause(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    pause: &PauseTopic,
) -> Answer {
    let for_ms = pause_ms(pause)?;
    everywhere(dispatcher, submission, &pause.topic, || pause::op(for_ms)).await?;
    emit(dispatcher, &pause.topic, EventKind::Paused);
    Ok(Reply::Done)
}

pub(super) async fn resume(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    name: &TopicName,
) -> Answer {
    everywhere(dispatcher, submission, name, pause::op_resume).await?;
    emit(dispatcher, name, EventKind::Resumed);
    Ok(Reply::Done)
}

async fn everywhere(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    name: &TopicName,
    op: impl Fn() -> Op,
) -> Result<(), Error> {
    for partition in partitions(dispatcher, name) {
        let (op, effect, priorities) = (op(), Effect::Change, Vec::new());
        submit(&partition, submission, |reply_to| PartitionRequest::Other {
            op,
            effect,
            priorities,
            reply_to,
        })
        .await?;
    }
    Ok(())
}

fn emit(dispatcher: &Dispatcher, topic: &TopicName, kind: EventKind) {
    let shared = &dispatcher.shared;
    if shared.events.is_watched() {
        let event = EventDetails { kind, id: None, due_at: None, attempt: 0 };
        events::emit(&shared.events, topic, shared.clock.now_ms(), [event]);
    }
}
