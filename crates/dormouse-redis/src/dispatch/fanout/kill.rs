//! kill: ends a lease, or a job that rests, as dead.

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::event::EventKind;
use dormouse_core::job::JobId;
use dormouse_core::op::{EndReply, Kill, KillTarget, Target, check};
use dormouse_core::refusal::{cannot_kill, lease_lost};

use super::Fanout;
use super::change::{CHANGES_MAX, missing, target_arg};
use super::scatter::{Routed, Scatter};
use crate::codec::{ItemResult, known_state};
use crate::events::EventDetails;
use crate::partition::Effect;
use crate::wire::codes::{self, GIVEN_ERROR, GIVEN_PRIORITY};
use crate::wire::{Op, Reader, Writer, malformed};

/// The fields of `kills` have been checked and their errors cut to the limit.
fn op(kills: &[Kill]) -> Op {
    let mut args = Vec::new();
    for kill in kills {
        let mut to = Writer::default();
        args.push(match &kill.target {
            KillTarget::Token(token) => to.u8(b't').id(token.id).u64(token.fence).take(),
            KillTarget::Resting(target) => target_arg(target),
        });
        let mut given = 0;
        given |= if kill.priority.is_some() { GIVEN_PRIORITY } else { 0 };
        given |= if kill.error.is_some() { GIVEN_ERROR } else { 0 };
        args.push(to.u8(given).u32(kill.priority.unwrap_or(0)).take());
        args.push(kill.error.clone().unwrap_or_default());
    }
    let priorities = kills.iter().filter_map(|kill| kill.priority).collect();
    Op { priorities, ..Op::new("kill", args) }
}

fn read(reply: &mut Reader<'_>, target: &KillTarget) -> ItemResult<EndReply> {
    let (code, id, state) = (reply.u8()?, reply.id()?, reply.u8()?);
    Ok(match (code, target) {
        (codes::DONE, _) => Ok(EndReply::Done),
        (codes::GONE, KillTarget::Token(_)) => Ok(EndReply::Gone),
        (codes::GONE, KillTarget::Resting(target)) => Err(missing(id, target)),
        (codes::LOST, KillTarget::Token(token)) => Err(lease_lost(*token)),
        (codes::CONFLICT, KillTarget::Resting(_)) => Err(cannot_kill(id, known_state(state)?)),
        _ => return Err(malformed("unknown result of a kill")),
    })
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
        let dead_topics = scatter.with_dead_topics();
        let replies = scatter.gather_op(
            self,
            Effect::Change,
            op,
            |from, _, _, item| read(from, &item.target),
            change,
        );
        let replies = replies.await;
        if replies.contains(&Ok(EndReply::Done)) {
            Fanout { submission: None, ..self }.send_letters_of(&dead_topics).await;
        }
        self.emit_killed(&targets, &replies);
        Ok(Reply::Ended(replies))
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
}
