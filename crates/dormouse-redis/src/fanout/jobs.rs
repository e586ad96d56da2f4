//! Commands that name single jobs: cancel, reschedule, revive, kill, get, reserve_id.

use std::rc::Rc;

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::event::EventKind;
use dormouse_core::limits::REPLY_BYTES_MAX;
use dormouse_core::op::{
    Cancel, ChangeReply, EndReply, Kill, KillTarget, Reschedule, ReserveId, Target, check,
};
use dormouse_core::refusal::{does_not_fit, no_job, no_session};

use super::put::refuse;
use super::{OpSpec, Scatter, reply, run_op, unanswered};
use crate::clock::ANY_TIME;
use crate::codec::{cancel, get, kill, reschedule, reserve_id, revive};
use crate::dispatch::Dispatcher;
use crate::dispatch::sessions::SessionLease;
use crate::events::{self, EventDetails};
use crate::partition::{Effect, Partition, SubmissionNo};

/// Changes in one request: each costs a handful of Redis commands.
const CHANGES_MAX: usize = 32;
/// Jobs read in one request.
const READS_MAX: usize = 128;

/// The partition of a job, if it is known.
fn partition_of(dispatcher: &Dispatcher, target: &Target) -> Option<Rc<Partition>> {
    match target {
        Target::Id(id) => dispatcher.partition_of(*id),
        Target::Key { topic, key } => dispatcher.known(topic)?.partition_of_key(key).cloned(),
    }
}

pub(super) async fn cancel(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    cancels: Vec<Cancel>,
) -> Answer {
    check::batch(cancels.len())?;
    let mut replies = unanswered(cancels.len());
    let mut scatter = Scatter::new();
    for (index, item) in cancels.into_iter().enumerate() {
        match partition_of(dispatcher, &item.target) {
            Some(partition) => scatter.add(&partition, index, item, CHANGES_MAX),
            None => refuse(&mut replies, index, no_job(&item.target)),
        }
    }
    let spec = OpSpec::new(Effect::Change, |items: &[Cancel]| cancel::op(items.iter()));
    let read = scatter.gather_op(submission, &mut replies, spec, |from, _, _, item| {
        cancel::read(from, &item.target)
    });
    read.await;
    emit(dispatcher, EventKind::Cancelled, &replies);
    reply(replies, Reply::Changed)
}

pub(super) async fn reschedule(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    moves: Vec<Reschedule>,
) -> Answer {
    check::batch(moves.len())?;
    let mut replies = unanswered(moves.len());
    let mut scatter = Scatter::new();
    for (index, item) in moves.into_iter().enumerate() {
        let due = check::due(ANY_TIME, item.delay_ms, item.at_ms);
        match (due, partition_of(dispatcher, &item.target)) {
            (Err(error), _) => refuse(&mut replies, index, error),
            (Ok(_), Some(partition)) => scatter.add(&partition, index, item, CHANGES_MAX),
            (Ok(_), None) => refuse(&mut replies, index, no_job(&item.target)),
        }
    }
    let spec = OpSpec::new(Effect::Change, |items: &[Reschedule]| reschedule::op(items.iter()));
    let read = scatter.gather_op(submission, &mut replies, spec, |from, _, _, item| {
        reschedule::read(from, &item.target)
    });
    read.await;
    emit(dispatcher, EventKind::Rescheduled, &replies);
    reply(replies, Reply::Changed)
}

pub(super) async fn revive(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    targets: Vec<Target>,
) -> Answer {
    check::batch(targets.len())?;
    let mut replies = unanswered(targets.len());
    let mut scatter = Scatter::new();
    for (index, target) in targets.into_iter().enumerate() {
        match partition_of(dispatcher, &target) {
            Some(partition) => scatter.add(&partition, index, target, CHANGES_MAX),
            None => refuse(&mut replies, index, no_job(&target)),
        }
    }
    let spec = OpSpec::new(Effect::Change, |items: &[Target]| revive::op(items.iter()));
    let read = scatter
        .gather_op(submission, &mut replies, spec, |from, _, _, target| revive::read(from, target));
    read.await;
    emit(dispatcher, EventKind::Revived, &replies);
    reply(replies, Reply::Changed)
}

pub(super) async fn kill(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    kills: Vec<Kill>,
) -> Answer {
    check::batch(kills.len())?;
    let mut replies = unanswered(kills.len());
    let mut scatter = Scatter::new();
    let targets: Vec<KillTarget> = kills.iter().map(|kill| kill.target.clone()).collect();
    for (index, mut item) in kills.into_iter().enumerate() {
        item.error = item.error.map(check::error_text);
        let partition = match &item.target {
            KillTarget::Token(token) => {
                dispatcher.sessions.borrow_mut().drop_lease(*token);
                dispatcher.partition_of(token.id)
            }
            KillTarget::Resting(target) => partition_of(dispatcher, target),
        };
        match (partition, &item.target, replies.get_mut(index)) {
            (Some(partition), ..) => scatter.add(&partition, index, item, CHANGES_MAX),
            (None, KillTarget::Token(_), Some(entry)) => *entry = Some(Ok(EndReply::Gone)),
            (None, KillTarget::Resting(target), _) => refuse(&mut replies, index, no_job(target)),
            (None, _, None) => {}
        }
    }
    let spec = OpSpec {
        effect: Effect::Change,
        op: |items: &[Kill]| kill::op(items.iter()),
        priorities: |items: &[Kill]| items.iter().filter_map(|item| item.priority).collect(),
    };
    let read = scatter.gather_op(submission, &mut replies, spec, |from, _, _, item| {
        kill::read(from, &item.target)
    });
    read.await;
    emit_killed(dispatcher, &targets, &replies);
    reply(replies, Reply::Ended)
}

pub(super) async fn get(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    targets: Vec<Target>,
) -> Answer {
    check::batch(targets.len())?;
    if targets.is_empty() {
        // A get of nothing is a health check.
        dispatcher.shared.client.check_health().await?;
    }
    let mut replies = unanswered(targets.len());
    let mut scatter = Scatter::new();
    for (index, target) in targets.into_iter().enumerate() {
        match partition_of(dispatcher, &target) {
            Some(partition) => scatter.add(&partition, index, target, READS_MAX),
            None => refuse(&mut replies, index, no_job(&target)),
        }
    }
    let op = |items: &[Target]| get::op(items.iter(), REPLY_BYTES_MAX);
    let spec = OpSpec::new(Effect::Read, op);
    scatter.gather_op(submission, &mut replies, spec, get::read).await;
    let mut left = REPLY_BYTES_MAX;
    for reply in replies.iter_mut().flatten() {
        // Each script kept to the bound; all together must keep to it too.
        if let Ok(view) = reply {
            match left.checked_sub(u64::from(view.job.progress.bytes)) {
                Some(less) => left = less,
                None => *reply = Err(does_not_fit(view.job.id)),
            }
        }
    }
    reply(replies, Reply::Views)
}

/// Emits events for killed jobs, except those named by key: the reply does not give their ids.
fn emit_killed(
    dispatcher: &Dispatcher,
    targets: &[KillTarget],
    replies: &[Option<Result<EndReply, Error>>],
) {
    let shared = &dispatcher.shared;
    if !shared.events.is_watched() {
        return;
    }
    for (target, reply) in targets.iter().zip(replies) {
        let id = match target {
            KillTarget::Token(token) => token.id,
            KillTarget::Resting(Target::Id(id)) => *id,
            KillTarget::Resting(Target::Key { .. }) => continue,
        };
        let topic = dispatcher.partition_of(id).and_then(|partition| partition.topic.clone());
        if let (Some(topic), Some(Ok(EndReply::Done))) = (topic, reply) {
            let kind = EventKind::Killed;
            let event = EventDetails { kind, id: Some(id), due_at: None, attempt: 0 };
            events::emit(&shared.events, &topic, shared.clock.now_ms(), [event]);
        }
    }
}

fn emit(dispatcher: &Dispatcher, kind: EventKind, replies: &[Option<Result<ChangeReply, Error>>]) {
    let shared = &dispatcher.shared;
    if !shared.events.is_watched() {
        return;
    }
    for changed in replies.iter().flatten().flatten() {
        let Some(partition) = dispatcher.partition_of(changed.id) else { continue };
        if let Some(topic) = &partition.topic {
            // A cancelled job is not due any more.
            let due_at = (kind != EventKind::Cancelled).then_some(changed.due_at);
            let event = EventDetails { kind, id: Some(changed.id), due_at, attempt: 0 };
            events::emit(&shared.events, topic, shared.clock.now_ms(), [event]);
        }
    }
}

pub(super) async fn reserve_id(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    reserve: ReserveId,
) -> Answer {
    let ttr_ms = check::ttr(reserve.ttr_ms)?;
    if let Some(session) = reserve.session
        && !dispatcher.sessions.borrow().is_open(session)
    {
        return Err(no_session(session));
    }
    let (id, missing) = (reserve.id, || no_job(&Target::Id(reserve.id)));
    let partition = dispatcher.partition_of(id).ok_or_else(missing)?;
    let topic = partition.topic.clone().ok_or_else(missing)?;
    let pending = run_op(&partition, submission, Effect::Lease, reserve_id::op(id, ttr_ms));
    let mut raw = pending.await?;
    let mut from = crate::wire::Reader::new(&raw.answer);
    let job = reserve_id::read(&mut from, &mut raw.records, &topic, raw.now_ms, id)??;
    if let Some(session) = reserve.session
        && !dispatcher.sessions.borrow_mut().add(session, SessionLease::of(&job), raw.now_ms)
    {
        partition.give_back(&[job.token]);
        return Err(no_session(session));
    }
    if dispatcher.shared.events.is_watched() {
        let (kind, id) = (EventKind::Reserved, Some(job.id));
        let event = EventDetails { kind, id, due_at: None, attempt: job.attempt };
        events::emit(&dispatcher.shared.events, &topic, raw.now_ms, [event]);
    }
    Ok(Reply::Jobs(vec![job]))
}
