//! Whole topics: kick, revive, purge, settings, pause.

use std::rc::Rc;

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::event::EventKind;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Kick, PauseTopic, ReviveTopic, SetTopic};
use dormouse_core::topic::TopicName;

use super::{ask, ask_other, line_up, pause_ms};
use crate::codec::kick::{self, Portion};
use crate::codec::{pause, purge, revive, stats};
use crate::dispatch::Desk;
use crate::events::What;
use crate::partition::{Ask, BatchNo, Effect, FLIGHT_JOBS_MAX, Partition};
use crate::wire::{Op, Reader};

/// The partitions of a topic that is known.
pub(super) fn partitions(desk: &Desk, name: &TopicName) -> Vec<Rc<Partition>> {
    desk.known(name).map(|topic| topic.partitions.clone()).unwrap_or_default()
}

pub(super) async fn kick(desk: &Rc<Desk>, batch: BatchNo, kick: &Kick) -> Answer {
    let partitions = partitions(desk, &kick.topic);
    portions(batch, &partitions, kick.max, kick::op, kick::read).await
}

pub(super) async fn revive(desk: &Rc<Desk>, batch: BatchNo, revive: &ReviveTopic) -> Answer {
    let partitions = partitions(desk, &revive.topic);
    portions(batch, &partitions, revive.max, revive::op_oldest, revive::read_oldest).await
}

/// Does something to as many jobs as asked for, a script's worth at a time.
async fn portions(
    batch: BatchNo,
    partitions: &[Rc<Partition>],
    max: usize,
    op: fn(usize) -> Op,
    read: fn(&mut Reader<'_>) -> Result<Portion, Error>,
) -> Answer {
    let mut left = max.min(BATCH_MAX);
    for partition in partitions {
        while left > 0 {
            let asked = left.min(FLIGHT_JOBS_MAX);
            let raw = ask_other(partition, batch, Effect::Change, op(asked)).await?;
            let portion = read(&mut Reader::new(&raw.answer))?;
            let done = usize::try_from(portion.count).unwrap_or(usize::MAX);
            left = left.saturating_sub(done);
            if done < asked && !portion.more {
                break;
            }
        }
    }
    Ok(Reply::Count((max.min(BATCH_MAX) - left) as u64))
}

pub(super) async fn purge(desk: &Rc<Desk>, batch: BatchNo, name: &TopicName) -> Answer {
    let mut removed = 0;
    for partition in partitions(desk, name) {
        let mut rest: Option<Bytes> = None;
        loop {
            let op = purge::op(rest);
            let raw = ask_other(&partition, batch, Effect::Change, op).await?;
            let purged = purge::read(&mut Reader::new(&raw.answer))?;
            removed += purged.removed;
            rest = purged.rest;
            if rest.is_none() {
                break;
            }
        }
    }
    if removed > 0 {
        tell(desk, name, EventKind::Purged);
    }
    Ok(Reply::Count(removed))
}

/// All partitions get the settings; dead jobs that they do not keep go at once.
pub(super) async fn set(desk: &Rc<Desk>, batch: BatchNo, set: SetTopic) -> Answer {
    set.check()?;
    let mut under_way = Vec::new();
    for partition in partitions(desk, &set.topic) {
        let settings = set.settings.clone();
        let answer = line_up(&partition, batch, |to| Ask::Configure { settings, to });
        under_way.push((partition, answer));
    }
    for (partition, answer) in under_way {
        answer.await?;
        loop {
            let raw = ask_other(&partition, batch, Effect::Look, stats::op()).await?;
            if !stats::read(&mut Reader::new(&raw.answer))?.more {
                break;
            }
        }
    }
    tell(desk, &set.topic, EventKind::TopicSet);
    Ok(Reply::Done)
}

pub(super) async fn pause(desk: &Rc<Desk>, batch: BatchNo, pause: &PauseTopic) -> Answer {
    let for_ms = pause_ms(pause)?;
    everywhere(desk, batch, &pause.topic, || pause::op(for_ms)).await?;
    tell(desk, &pause.topic, EventKind::Paused);
    Ok(Reply::Done)
}

pub(super) async fn resume(desk: &Rc<Desk>, batch: BatchNo, name: &TopicName) -> Answer {
    everywhere(desk, batch, name, pause::op_resume).await?;
    tell(desk, name, EventKind::Resumed);
    Ok(Reply::Done)
}

async fn everywhere(
    desk: &Rc<Desk>,
    batch: BatchNo,
    name: &TopicName,
    op: impl Fn() -> Op,
) -> Result<(), Error> {
    for partition in partitions(desk, name) {
        let (op, effect, priorities) = (op(), Effect::Change, Vec::new());
        ask(&partition, batch, |to| Ask::Other { op, effect, priorities, to }).await?;
    }
    Ok(())
}

/// Tells of a topic.
fn tell(desk: &Desk, topic: &TopicName, kind: EventKind) {
    let shared = &desk.shared;
    if shared.teller.is_watched() {
        let what = What { kind, id: None, due_at: None, attempt: 0 };
        shared.teller.tell(topic, shared.clock.now_ms(), [what]);
    }
}
