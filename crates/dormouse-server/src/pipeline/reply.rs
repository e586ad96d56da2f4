//! Replies between the backend and a protocol.

use std::vec;

use dormouse_core::backend::Answer;
use dormouse_core::command::{Operation, Reply, only};
use dormouse_core::error::Error;
use dormouse_core::op::{Ack, EndReply, JobView, LeasedJob, Put, PutReply};
use dormouse_core::refusal::unexpected;

use super::listen::PipelineContext;
use crate::budget::Held;
use crate::client::{BatchReplies, no_reply};
use crate::limits::OUTPUT_BYTES;

/// The estimated size of a topic in a page of topics.
const TOPIC_BYTES: u64 = 512;

/// The reply to one request.
pub(crate) enum RequestReply {
    /// To one put of a row.
    Put(PutReply),
    /// To one ack of a row.
    Ack(EndReply),
    /// To any other request: the reply to its command.
    Command(Reply),
}

impl RequestReply {
    /// The reply to this operation.
    pub(crate) fn of<O: Operation>(self) -> Result<O::Reply, Error> {
        match self {
            RequestReply::Command(reply) => O::from_reply(reply),
            RequestReply::Put(_) | RequestReply::Ack(_) => Err(unexpected(&Reply::Done)),
        }
    }

    /// The reply to a put.
    pub(crate) fn of_put(self) -> Result<PutReply, Error> {
        match self {
            RequestReply::Put(reply) => Ok(reply),
            other => other.of::<Put>(),
        }
    }

    /// The reply to what ends one lease: an ack, nack, release or kill.
    pub(crate) fn of_end(self) -> Result<EndReply, Error> {
        match self {
            RequestReply::Ack(ended) => Ok(ended),
            other => only(other.of::<Ack>()?),
        }
    }
}

/// The replies to a row of puts or acks, one for each request.
pub(super) enum RowReplies {
    Puts(vec::IntoIter<Result<PutReply, Error>>),
    Acks(vec::IntoIter<Result<EndReply, Error>>),
    Failed(Error),
}

impl RowReplies {
    /// Splits the reply to a row of this length.
    pub(super) fn new(answer: Answer, count: usize) -> RowReplies {
        match answer {
            Ok(Reply::Put(items)) if items.len() == count => RowReplies::Puts(items.into_iter()),
            Ok(Reply::Ended(items)) if items.len() == count => RowReplies::Acks(items.into_iter()),
            Ok(other) => RowReplies::Failed(unexpected(&other)),
            Err(error) => RowReplies::Failed(error),
        }
    }

    /// The reply to the next request.
    pub(super) fn next(&mut self) -> Result<RequestReply, Error> {
        let reply = match self {
            RowReplies::Puts(items) => items.next().map(|item| item.map(RequestReply::Put)),
            RowReplies::Acks(items) => items.next().map(|item| item.map(RequestReply::Ack)),
            RowReplies::Failed(error) => Some(Err(error.clone())),
        };
        reply.unwrap_or_else(|| Err(no_reply()))
    }
}

/// Holds the bytes of replies until they are written. A large reply is refused while all unread
/// replies together exceed their budget, and its grants are given back; small ones are never
/// refused.
pub(super) fn hold(context: &PipelineContext, replies: &mut BatchReplies) -> Held {
    let (mut held, mut total) = (context.answers.hold(), 0);
    replies.refuse_some(|reply| {
        let bytes = weight(reply);
        total += bytes;
        if total > OUTPUT_BYTES {
            context.answers.room_for(bytes)?;
        }
        held.take(bytes);
        Ok(())
    });
    held
}

/// The bytes that a reply holds; only those of kinds that can be large.
fn weight(reply: &Reply) -> usize {
    let viewed = |view: &JobView| u64::from(view.job.progress.bytes);
    let bytes = match reply {
        Reply::Jobs(jobs) => jobs.iter().map(LeasedJob::bytes).sum(),
        Reply::Page(page) => page.jobs.iter().map(viewed).sum(),
        Reply::Views(views) => views.iter().flatten().map(viewed).sum(),
        Reply::View(view) => view.as_deref().map_or(0, viewed),
        Reply::Topics(page) => page.topics.len() as u64 * TOPIC_BYTES,
        _ => 0,
    };
    // Bounded by what a reply may hold.
    bytes as usize
}
