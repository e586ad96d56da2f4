//! Commands that name single jobs: cancel, reschedule, revive, kill, get, reserve_id.

use std::rc::Rc;

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::event::EventKind;
use dormouse_core::job::JobId;
use dormouse_core::limits::REPLY_BYTES_MAX;
use dormouse_core::op::{
    Cancel, ChangeReply, EndReply, Kill, KillTarget, Reschedule, ReserveId, Target, check,
};
use dormouse_core::refusal::{does_not_fit, no_job, no_session};

use super::Fanout;
use super::scatter::{Change, Routed, Scatter};
use crate::clock::ANY_TIME;
use crate::codec::{cancel, get, kill, reschedule, reserve_id, revive};
use crate::dispatch::sessions::SessionLease;
use crate::events::{self, EventDetails};
use crate::partition::{Effect, Partition, PerItem};
use crate::wire::Reader;

/// Changes in one request: each costs a handful of Redis commands.
const CHANGES_MAX: usize = 32;
/// Jobs read in one request.
const READS_MAX: usize = 128;

/// What a command did to a job.
fn change_of(reply: &ChangeReply, done: &str) -> Change {
    (format!("job {} was {done}", reply.id), Some(reply.id))
}

/// The id of a job to kill, unless it is named by its key.
fn killed_id(target: &KillTarget) -> Option<JobId> {
    match target {
        KillTarget::Token(token) => Some(token.id),
        KillTarget::Resting(Target::Id(id)) => Some(*id),
        KillTarget::Resting(Target::Key { .. }) => None,
    }
}

impl Fanout<'_> {
    fn partition_of(self, target: &Target) -> Result<Rc<Partition>, Error> {
        let partition = match target {
            Target::Id(id) => self.dispatcher.partition_of(*id),
            Target::Key { topic, key } => {
                let topic = self.dispatcher.known(topic);
                topic.and_then(|topic| topic.partition_of_key(key).cloned())
            }
        };
        partition.ok_or_else(|| no_job(target))
    }

    pub(super) async fn cancel(self, cancels: Vec<Cancel>) -> Answer {
        let route = |item: Cancel| Ok(Routed::To(self.partition_of(&item.target)?, item));
        let scatter = Scatter::new(cancels, |_| CHANGES_MAX, route)?;
        let replies = scatter.gather_op(
            self,
            Effect::Change,
            cancel::op,
            |from, _, _, item| cancel::read(from, &item.target),
            |reply, _| Some(change_of(reply, "cancelled")),
        );
        Ok(self.changed(EventKind::Cancelled, replies.await))
    }

    pub(super) async fn reschedule(self, moves: Vec<Reschedule>) -> Answer {
        let scatter = Scatter::new(
            moves,
            |_| CHANGES_MAX,
            |item: Reschedule| {
                check::due(ANY_TIME, item.delay_ms, item.at_ms)?;
                Ok(Routed::To(self.partition_of(&item.target)?, item))
            },
        )?;
        let replies = scatter.gather_op(
            self,
            Effect::Change,
            reschedule::op,
            |from, _, _, item| reschedule::read(from, &item.target),
            |reply, _| Some(change_of(reply, "rescheduled")),
        );
        Ok(self.changed(EventKind::Rescheduled, replies.await))
    }

    pub(super) async fn revive(self, targets: Vec<Target>) -> Answer {
        let route = |target| Ok(Routed::To(self.partition_of(&target)?, target));
        let scatter = Scatter::new(targets, |_| CHANGES_MAX, route)?;
        let replies = scatter.gather_op(
            self,
            Effect::Change,
            revive::op,
            |from, _, _, target| revive::read(from, target),
            |reply, _| Some(change_of(reply, "revived")),
        );
        Ok(self.changed(EventKind::Revived, replies.await))
    }

    pub(super) async fn kill(self, kills: Vec<Kill>) -> Answer {
        let targets: Vec<KillTarget> = kills.iter().map(|kill| kill.target.clone()).collect();
        let scatter = Scatter::new(
            kills,
            |_| CHANGES_MAX,
            |mut item: Kill| {
                item.error = item.error.map(check::error_text);
                match &item.target {
                    KillTarget::Token(token) => Ok(self.route_end(*token, item)),
                    KillTarget::Resting(target) => Ok(Routed::To(self.partition_of(target)?, item)),
                }
            },
        )?;
        let change = |reply: &EndReply, item: &Kill| {
            let is_changed = *reply != EndReply::Gone;
            is_changed.then(|| match killed_id(&item.target) {
                Some(id) => (format!("job {id} was killed"), Some(id)),
                None => ("the job was killed".to_owned(), None),
            })
        };
        let replies = scatter.gather_op(
            self,
            Effect::Change,
            kill::op,
            |from, _, _, item| kill::read(from, &item.target),
            change,
        );
        let replies = replies.await;
        self.emit_killed(&targets, &replies);
        Ok(Reply::Ended(replies))
    }

    pub(super) async fn get(self, targets: Vec<Target>) -> Answer {
        if targets.is_empty() {
            // A get of nothing is a health check.
            self.dispatcher.shared.client.check_health().await?;
        }
        let route = |target| Ok(Routed::To(self.partition_of(&target)?, target));
        let scatter = Scatter::new(targets, |_| READS_MAX, route)?;
        let op = |targets: &[Target]| get::op(targets, REPLY_BYTES_MAX);
        let mut replies = scatter.gather_op(self, Effect::Read, op, get::read, |_, _| None).await;
        let mut left = REPLY_BYTES_MAX;
        for reply in &mut replies {
            // Each script kept to the bound; all together must keep to it too.
            if let Ok(view) = reply {
                match left.checked_sub(u64::from(view.job.progress.bytes)) {
                    Some(less) => left = less,
                    None => *reply = Err(does_not_fit(view.job.id)),
                }
            }
        }
        Ok(Reply::Views(replies))
    }

    /// Emits events for killed jobs, except those named by key: the reply does not give their ids.
    fn emit_killed(self, targets: &[KillTarget], replies: &[Result<EndReply, Error>]) {
        if !self.is_watched() {
            return;
        }
        for (target, reply) in targets.iter().zip(replies) {
            let Some(id) = killed_id(target) else { continue };
            if let (Some(topic), Ok(EndReply::Done)) = (self.topic_of(id), reply) {
                let kind = EventKind::Killed;
                self.emit(&topic, EventDetails { kind, id: Some(id), due_at: None, attempt: 0 });
            }
        }
    }

    /// The reply to a command that changes jobs, with its events.
    fn changed(self, kind: EventKind, replies: PerItem<ChangeReply>) -> Reply {
        for changed in replies.iter().flatten().filter(|_| self.is_watched()) {
            if let Some(topic) = self.topic_of(changed.id) {
                // A cancelled job is not due any more.
                let due_at = (kind != EventKind::Cancelled).then_some(changed.due_at);
                self.emit(&topic, EventDetails { kind, id: Some(changed.id), due_at, attempt: 0 });
            }
        }
        Reply::Changed(replies)
    }

    pub(super) async fn reserve_id(self, reserve: ReserveId) -> Answer {
        let ttr_ms = check::ttr(reserve.ttr_ms)?;
        self.check_session(reserve.session)?;
        let (id, missing) = (reserve.id, || no_job(&Target::Id(reserve.id)));
        let partition = self.dispatcher.partition_of(id).ok_or_else(missing)?;
        let topic = partition.topic.clone().ok_or_else(missing)?;
        let op = reserve_id::op(id, ttr_ms);
        let mut raw = self.submit_op(&partition, Effect::Lease, op).await?;
        let mut from = Reader::new(&raw.answer);
        let job = reserve_id::read(&mut from, &mut raw.records, &topic, raw.now_ms, id)??;
        if let Some(session) = reserve.session
            && !self.dispatcher.sessions.borrow_mut().add(
                session,
                SessionLease::of(&job),
                raw.now_ms,
            )
        {
            partition.give_back(&[job.token]);
            return Err(no_session(session));
        }
        if self.is_watched() {
            let (kind, id) = (EventKind::Reserved, Some(job.id));
            let event = EventDetails { kind, id, due_at: None, attempt: job.attempt };
            events::emit(&self.dispatcher.shared.events, &topic, raw.now_ms, [event]);
        }
        Ok(Reply::Jobs(vec![job]))
    }
}
