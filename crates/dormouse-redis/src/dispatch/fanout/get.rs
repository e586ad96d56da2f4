//! get: jobs by id or key, as they are.

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::job::Job;
use dormouse_core::limits::REPLY_BYTES_MAX;
use dormouse_core::op::{JobView, Target};
use dormouse_core::refusal::{does_not_fit, no_job};
use dormouse_core::topic::TopicName;

use super::Fanout;
use super::change::target_arg;
use super::scatter::{Routed, Scatter};
use crate::codec::{ItemResult, known_state};
use crate::partition::Effect;
use crate::wire::flow::held_by;
use crate::wire::{Op, Reader, Records, codes, malformed, number, progress, record};

/// Jobs read in one request.
const READS_MAX: usize = 128;

fn op(targets: &[Target]) -> Op {
    let targets = targets.iter().map(target_arg);
    Op::new("get", std::iter::once(number(REPLY_BYTES_MAX)).chain(targets).collect())
}

fn read(
    reply: &mut Reader<'_>,
    records: &mut Records,
    topic: &TopicName,
    target: &Target,
) -> ItemResult<JobView> {
    Ok(read_view(reply, records, topic)?.unwrap_or_else(|| Err(no_job(target))))
}

/// `None`: there is no such job; an error: it does not fit into the reply.
pub(super) fn read_view(
    reply: &mut Reader<'_>,
    records: &mut Records,
    topic: &TopicName,
) -> Result<Option<Result<JobView, Error>>, Error> {
    match reply.u8()? {
        codes::MISSING => return Ok(None),
        codes::FOUND => {}
        codes::NO_ROOM => return Ok(Some(Err(does_not_fit(reply.id()?)))),
        _ => return Err(malformed("unknown result of a read")),
    }
    let (state, due_at) = (known_state(reply.u8()?)?, reply.u48()?);
    let (lapsed, id) = (reply.u8()? == 1, reply.id()?);
    let text = reply.short_bytes()?;
    let held_by = held_by(reply.u8()?)?;
    let record = records.next()?;
    if record.is_empty() {
        // It was removed before the lost reply was requested again.
        return Ok(None);
    }
    let (content, priority) = record::decode(&record)?;
    let progress = if text.is_empty() {
        progress::fresh(u32::try_from(content.bytes()).unwrap_or(u32::MAX), priority)
    } else {
        progress::decode(text, lapsed)?
    };
    let job = Job { id, content, progress };
    Ok(Some(Ok(JobView { topic: topic.clone(), state, due_at, job, held_by })))
}

impl Fanout<'_> {
    pub(super) async fn get(self, targets: Vec<Target>) -> Answer {
        if targets.is_empty() {
            // A get of nothing is a health check.
            self.dispatcher.shared.client.check_health().await?;
        }
        let route = |target| Ok(Routed::To(self.partition_of(&target)?, target));
        let scatter = Scatter::new(targets, |_| READS_MAX, route)?;
        let mut replies = scatter.gather_op(self, Effect::Read, op, read, |_, _| None).await;
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
}
