//! cancel, reschedule, revive, kill, get, reserve_id: what is said of single jobs.

use std::rc::Rc;

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::event::EventKind;
use dormouse_core::limits::REPLY_BYTES_MAX;
use dormouse_core::op::{
    Cancel, Changed, Ended, Kill, KillTarget, Reschedule, ReserveId, Target, check,
};
use dormouse_core::refusal::{does_not_fit, no_job, no_session};

use super::put::fill;
use super::{Asked, Scatter, ask_other, places, reply};
use crate::clock::ANY_TIME;
use crate::codec::{cancel, get, kill, reschedule, reserve_id, revive};
use crate::dispatch::Desk;
use crate::dispatch::sessions::Held;
use crate::events::What;
use crate::partition::{BatchNo, Effect, Partition};

/// Items that a script does at once: each is a handful of commands.
const ITEMS_MAX: usize = 32;
/// Jobs that are looked at at once.
const LOOKS_MAX: usize = 128;

/// The partition of a job, if it is in any that is known.
fn partition_of(desk: &Desk, target: &Target) -> Option<Rc<Partition>> {
    match target {
        Target::Id(id) => desk.partition_of(*id),
        Target::Key { topic, key } => desk.known(topic)?.partition_of_key(key).cloned(),
    }
}

pub(super) async fn cancel(desk: &Rc<Desk>, batch: BatchNo, cancels: Vec<Cancel>) -> Answer {
    check::batch(cancels.len())?;
    let mut replies = places(cancels.len());
    let mut scatter = Scatter::new();
    for (index, item) in cancels.into_iter().enumerate() {
        match partition_of(desk, &item.target) {
            Some(partition) => scatter.add(&partition, index, item, ITEMS_MAX),
            None => fill(&mut replies, index, no_job(&item.target)),
        }
    }
    let asked = Asked::new(Effect::Change, |items: &[Cancel]| cancel::op(items.iter()));
    let read = scatter.gather_other(batch, &mut replies, asked, |from, _, _, item| {
        cancel::read(from, &item.target)
    });
    read.await;
    tell(desk, EventKind::Cancelled, &replies);
    reply(replies, Reply::Changed)
}

pub(super) async fn reschedule(desk: &Rc<Desk>, batch: BatchNo, moves: Vec<Reschedule>) -> Answer {
    check::batch(moves.len())?;
    let mut replies = places(moves.len());
    let mut scatter = Scatter::new();
    for (index, item) in moves.into_iter().enumerate() {
        let due = check::due(ANY_TIME, item.delay_ms, item.at_ms);
        match (due, partition_of(desk, &item.target)) {
            (Err(error), _) => fill(&mut replies, index, error),
            (Ok(_), Some(partition)) => scatter.add(&partition, index, item, ITEMS_MAX),
            (Ok(_), None) => fill(&mut replies, index, no_job(&item.target)),
        }
    }
    let asked = Asked::new(Effect::Change, |items: &[Reschedule]| reschedule::op(items.iter()));
    let read = scatter.gather_other(batch, &mut replies, asked, |from, _, _, item| {
        reschedule::read(from, &item.target)
    });
    read.await;
    tell(desk, EventKind::Rescheduled, &replies);
    reply(replies, Reply::Changed)
}

pub(super) async fn revive(desk: &Rc<Desk>, batch: BatchNo, targets: Vec<Target>) -> Answer {
    check::batch(targets.len())?;
    let mut replies = places(targets.len());
    let mut scatter = Scatter::new();
    for (index, target) in targets.into_iter().enumerate() {
        match partition_of(desk, &target) {
            Some(partition) => scatter.add(&partition, index, target, ITEMS_MAX),
            None => fill(&mut replies, index, no_job(&target)),
        }
    }
    let asked = Asked::new(Effect::Change, |items: &[Target]| revive::op(items.iter()));
    let read = scatter
        .gather_other(batch, &mut replies, asked, |from, _, _, target| revive::read(from, target));
    read.await;
    tell(desk, EventKind::Revived, &replies);
    reply(replies, Reply::Changed)
}

pub(super) async fn kill(desk: &Rc<Desk>, batch: BatchNo, kills: Vec<Kill>) -> Answer {
    check::batch(kills.len())?;
    let mut replies = places(kills.len());
    let mut scatter = Scatter::new();
    let targets: Vec<KillTarget> = kills.iter().map(|kill| kill.target.clone()).collect();
    for (index, mut item) in kills.into_iter().enumerate() {
        item.error = item.error.map(check::error_text);
        let partition = match &item.target {
            KillTarget::Token(token) => {
                desk.sessions.borrow_mut().drop_lease(*token);
                desk.partition_of(token.id)
            }
            KillTarget::Resting(target) => partition_of(desk, target),
        };
        match (partition, &item.target, replies.get_mut(index)) {
            (Some(partition), ..) => scatter.add(&partition, index, item, ITEMS_MAX),
            (None, KillTarget::Token(_), Some(place)) => *place = Some(Ok(Ended::Gone)),
            (None, KillTarget::Resting(target), _) => fill(&mut replies, index, no_job(target)),
            (None, _, None) => {}
        }
    }
    let asked = Asked {
        effect: Effect::Change,
        op: |items: &[Kill]| kill::op(items.iter()),
        priorities: |items: &[Kill]| items.iter().filter_map(|item| item.priority).collect(),
    };
    let read = scatter.gather_other(batch, &mut replies, asked, |from, _, _, item| {
        kill::read(from, &item.target)
    });
    read.await;
    tell_killed(desk, &targets, &replies);
    reply(replies, Reply::Ended)
}

pub(super) async fn get(desk: &Rc<Desk>, batch: BatchNo, targets: Vec<Target>) -> Answer {
    check::batch(targets.len())?;
    if targets.is_empty() {
        // Who asks for nothing wants to know whether there is somebody to ask.
        desk.shared.link.feel_pulse().await?;
    }
    let mut replies = places(targets.len());
    let mut scatter = Scatter::new();
    for (index, target) in targets.into_iter().enumerate() {
        match partition_of(desk, &target) {
            Some(partition) => scatter.add(&partition, index, target, LOOKS_MAX),
            None => fill(&mut replies, index, no_job(&target)),
        }
    }
    let op = |items: &[Target]| get::op(items.iter(), REPLY_BYTES_MAX);
    let asked = Asked::new(Effect::Look, op);
    scatter.gather_other(batch, &mut replies, asked, get::read).await;
    let mut left = REPLY_BYTES_MAX;
    for reply in replies.iter_mut().flatten() {
        // Each script kept to the bound; all together must.
        if let Ok(view) = reply {
            match left.checked_sub(u64::from(view.job.progress.bytes)) {
                Some(less) => left = less,
                None => *reply = Err(does_not_fit(view.job.id)),
            }
        }
    }
    reply(replies, Reply::Views)
}

/// Tells of jobs that were killed; of those named by key nobody here knows the id.
fn tell_killed(desk: &Desk, targets: &[KillTarget], replies: &[Option<Result<Ended, Error>>]) {
    let shared = &desk.shared;
    if !shared.teller.is_watched() {
        return;
    }
    for (target, reply) in targets.iter().zip(replies) {
        let id = match target {
            KillTarget::Token(token) => token.id,
            KillTarget::Resting(Target::Id(id)) => *id,
            KillTarget::Resting(Target::Key { .. }) => continue,
        };
        let topic = desk.partition_of(id).and_then(|partition| partition.topic.clone());
        if let (Some(topic), Some(Ok(Ended::Done))) = (topic, reply) {
            let kind = EventKind::Killed;
            let what = What { kind, id: Some(id), due_at: None, attempt: 0 };
            shared.teller.tell(&topic, shared.clock.now_ms(), [what]);
        }
    }
}

/// Tells of jobs that were changed.
fn tell(desk: &Desk, kind: EventKind, replies: &[Option<Result<Changed, Error>>]) {
    let shared = &desk.shared;
    if !shared.teller.is_watched() {
        return;
    }
    for changed in replies.iter().flatten().flatten() {
        let Some(partition) = desk.partition_of(changed.id) else { continue };
        if let Some(topic) = &partition.topic {
            // What is cancelled is due no more.
            let due_at = (kind != EventKind::Cancelled).then_some(changed.due_at);
            let what = What { kind, id: Some(changed.id), due_at, attempt: 0 };
            shared.teller.tell(topic, shared.clock.now_ms(), [what]);
        }
    }
}

pub(super) async fn reserve_id(desk: &Rc<Desk>, batch: BatchNo, reserve: ReserveId) -> Answer {
    let ttr_ms = check::ttr(reserve.ttr_ms)?;
    if let Some(session) = reserve.session
        && !desk.sessions.borrow().is_open(session)
    {
        return Err(no_session(session));
    }
    let (id, missing) = (reserve.id, || no_job(&Target::Id(reserve.id)));
    let partition = desk.partition_of(id).ok_or_else(missing)?;
    let topic = partition.topic.clone().ok_or_else(missing)?;
    let asked = ask_other(&partition, batch, Effect::Lease, reserve_id::op(id, ttr_ms));
    let mut raw = asked.await?;
    let mut from = crate::wire::Reader::new(&raw.answer);
    let job = reserve_id::read(&mut from, &mut raw.records, &topic, raw.now_ms, id)??;
    if let Some(session) = reserve.session
        && !desk.sessions.borrow_mut().add(session, Held::of(&job), raw.now_ms)
    {
        partition.give_back(&[job.token]);
        return Err(no_session(session));
    }
    if desk.shared.teller.is_watched() {
        let (kind, id) = (EventKind::Reserved, Some(job.id));
        let what = What { kind, id, due_at: None, attempt: job.attempt };
        desk.shared.teller.tell(&topic, raw.now_ms, [what]);
    }
    Ok(Reply::Jobs(vec![job]))
}
