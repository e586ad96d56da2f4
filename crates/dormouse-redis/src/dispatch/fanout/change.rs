//! cancel, reschedule, revive: changes of single jobs, which are named by id or key.

use std::rc::Rc;

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::event::EventKind;
use dormouse_core::job::{JobId, State};
use dormouse_core::op::{Cancel, ChangeReply, Reschedule, Target, check};
use dormouse_core::refusal::{cancel_leased, cannot_move, job_done, no_job, not_dead};

use super::Fanout;
use super::scatter::{Routed, Scatter};
use crate::clock::ANY_TIME;
use crate::codec::{ItemResult, known_state, unknown_priority};
use crate::events::EventDetails;
use crate::partition::{Effect, Partition};
use crate::wire::{Op, Reader, Writer, codes, flag, malformed};

/// Changes in one request: each costs a handful of Redis commands.
pub(super) const CHANGES_MAX: usize = 32;

/// How a job is named in a script's arguments.
pub(super) fn target_arg(target: &Target) -> Bytes {
    let mut to = Writer::default();
    match target {
        Target::Id(id) => to.u8(b'i').id(*id).take(),
        Target::Key { key, .. } => to.u8(b'k').bytes(key).take(),
    }
}

/// The answer about a job that is not there; if `id` is not 0, it is done.
pub(super) fn missing(id: JobId, target: &Target) -> Error {
    if id == JobId(0) { no_job(target) } else { job_done(id) }
}

fn due_arg(item: &Reschedule) -> Bytes {
    let (clock, value_ms) = match (item.delay_ms, item.at_ms) {
        (_, Some(at_ms)) => (codes::CLOCK_AT, at_ms),
        (Some(delay_ms), None) => (codes::CLOCK_DELAY, delay_ms),
        (None, None) => (codes::CLOCK_NOW, 0),
    };
    Writer::default().u8(clock).u48(u64::try_from(value_ms).unwrap_or(0)).take()
}

/// A kind of change.
struct Change<I> {
    kind: EventKind,
    /// What it does, for answers.
    done: &'static str,
    verb: &'static str,
    args: fn(&I) -> Vec<Bytes>,
    target: fn(&I) -> &Target,
    check: fn(&I) -> Result<(), Error>,
    /// The error for a job in a state that does not allow it.
    refuse: fn(JobId, State) -> Error,
}

impl<I> Change<I> {
    fn op(&self, items: &[I]) -> Op {
        Op::new(self.verb, items.iter().flat_map(self.args).collect())
    }

    fn read(&self, reply: &mut Reader<'_>, item: &I) -> ItemResult<ChangeReply> {
        let (code, id) = (reply.u8()?, reply.id()?);
        let (was, due_at) = (reply.u8()?, reply.u48()?);
        Ok(match code {
            codes::DONE => Ok(ChangeReply { id, was: known_state(was)?, due_at }),
            codes::GONE => Err(missing(id, (self.target)(item))),
            codes::CONFLICT => Err((self.refuse)(id, known_state(was)?)),
            codes::UNKNOWN_PRIORITY => return Err(unknown_priority()),
            _ => return Err(malformed("unknown result of a change")),
        })
    }
}

impl Fanout<'_> {
    pub(super) fn partition_of(self, target: &Target) -> Result<Rc<Partition>, Error> {
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
        let change = Change {
            kind: EventKind::Cancelled,
            done: "cancelled",
            verb: "cancel",
            args: |item: &Cancel| vec![target_arg(&item.target), flag(item.unless_leased)],
            target: |item| &item.target,
            check: |_| Ok(()),
            refuse: |id, _| cancel_leased(id),
        };
        self.change(cancels, change).await
    }

    pub(super) async fn reschedule(self, moves: Vec<Reschedule>) -> Answer {
        let change = Change {
            kind: EventKind::Rescheduled,
            done: "rescheduled",
            verb: "reschedule",
            args: |item: &Reschedule| vec![target_arg(&item.target), due_arg(item)],
            target: |item| &item.target,
            check: |item| check::due(ANY_TIME, item.delay_ms, item.at_ms).map(|_| ()),
            refuse: cannot_move,
        };
        self.change(moves, change).await
    }

    pub(super) async fn revive(self, targets: Vec<Target>) -> Answer {
        let change = Change {
            kind: EventKind::Revived,
            done: "revived",
            verb: "revive",
            args: |target| vec![target_arg(target)],
            target: |target| target,
            check: |_| Ok(()),
            refuse: not_dead,
        };
        self.change(targets, change).await
    }

    async fn change<I>(self, items: Vec<I>, change: Change<I>) -> Answer {
        let route = |item| {
            (change.check)(&item)?;
            Ok(Routed::To(self.partition_of((change.target)(&item))?, item))
        };
        let replies = Scatter::new(items, |_| CHANGES_MAX, route)?.gather_op(
            self,
            Effect::Change,
            |items| change.op(items),
            |from, _, _, item| change.read(from, item),
            |reply, _| Some((format!("job {} was {}", reply.id, change.done), Some(reply.id))),
        );
        let (replies, kind) = (replies.await, change.kind);
        for changed in replies.iter().flatten().filter(|_| self.is_watched()) {
            if let Some(topic) = self.topic_of(changed.id) {
                // A cancelled job is not due any more.
                let due_at = (kind != EventKind::Cancelled).then_some(changed.due_at);
                self.emit(&topic, EventDetails { kind, id: Some(changed.id), due_at, attempt: 0 });
            }
        }
        Ok(Reply::Changed(replies))
    }
}
