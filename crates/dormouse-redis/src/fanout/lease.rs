//! Commands that name a lease by its token: ack, nack, release, extend.

use std::rc::Rc;

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{EndReply, Extend, Nack, Release, check};
use dormouse_core::refusal::nothing_to_extend;

use super::{Scatter, put::refuse, reply, unanswered};
use crate::codec::nack::EndRequest;
use crate::dispatch::Dispatcher;
use crate::partition::{BATCH_JOBS_MAX, PartitionRequest, SubmissionNo};

pub(super) async fn ack(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    tokens: Vec<Token>,
) -> Answer {
    check::batch(tokens.len())?;
    let mut replies = unanswered(tokens.len());
    let mut scatter = Scatter::new();
    for (index, token) in tokens.into_iter().enumerate() {
        match dispatcher.partition_of(token.id) {
            Some(partition) => scatter.add(&partition, index, token, BATCH_JOBS_MAX),
            None => gone(&mut replies, index),
        }
        dispatcher.sessions.borrow_mut().drop_lease(token);
    }
    scatter
        .gather(submission, &mut replies, |tokens, reply_to| PartitionRequest::Ack {
            tokens,
            reply_to,
        })
        .await;
    reply(replies, Reply::Ended)
}

pub(super) async fn nack(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    nacks: Vec<Nack>,
) -> Answer {
    check::batch(nacks.len())?;
    let ending = |nack: Nack| {
        let Nack { token, delay_ms, priority, error } = nack;
        let error = error.map(check::error_text);
        Ok(EndRequest {
            token,
            delay_ms: check::delay(delay_ms)?,
            priority,
            error,
            is_uncounted: false,
        })
    };
    let endings = nacks.into_iter().map(ending).collect();
    end(dispatcher, submission, true, endings).await
}

pub(super) async fn release(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    releases: Vec<Release>,
) -> Answer {
    check::batch(releases.len())?;
    let ending = |release: Release| {
        let Release { token, delay_ms, priority } = release;
        let delay_ms = check::delay(delay_ms)?;
        Ok(EndRequest { token, delay_ms, priority, error: None, is_uncounted: false })
    };
    let endings = releases.into_iter().map(ending).collect();
    end(dispatcher, submission, false, endings).await
}

/// Releases the leases of a closed session; they are not counted as released by a caller.
pub(super) async fn give_back(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    tokens: &[Token],
) -> Answer {
    let ending = |&token| {
        Ok(EndRequest { token, delay_ms: None, priority: None, error: None, is_uncounted: true })
    };
    end(dispatcher, submission, false, tokens.iter().map(ending).collect()).await
}

async fn end(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    spends: bool,
    endings: Vec<Result<EndRequest, Error>>,
) -> Answer {
    let mut replies = unanswered(endings.len());
    let mut scatter = Scatter::new();
    for (index, ending) in endings.into_iter().enumerate() {
        match ending {
            Err(error) => refuse(&mut replies, index, error),
            Ok(ending) => {
                let token = ending.token;
                match dispatcher.partition_of(token.id) {
                    Some(partition) => {
                        scatter.add(&partition, index, ending, BATCH_JOBS_MAX / 2);
                    }
                    None => gone(&mut replies, index),
                }
                dispatcher.sessions.borrow_mut().drop_lease(token);
            }
        }
    }
    let request = |endings, reply_to| PartitionRequest::End { spends, endings, reply_to };
    scatter.gather(submission, &mut replies, request).await;
    reply(replies, Reply::Ended)
}

pub(super) async fn extend(
    dispatcher: &Rc<Dispatcher>,
    submission: SubmissionNo,
    extends: Vec<Extend>,
) -> Answer {
    check::batch(extends.len())?;
    let mut replies = unanswered(extends.len());
    let mut scatter = Scatter::new();
    let tokens: Vec<_> = extends.iter().map(|extend| extend.token).collect();
    for (index, extend) in extends.into_iter().enumerate() {
        let id: JobId = extend.token.id;
        match (check::ttr(extend.ttr_ms), dispatcher.partition_of(id)) {
            (Err(error), _) => refuse(&mut replies, index, error),
            (Ok(_), None) => refuse(&mut replies, index, nothing_to_extend(id)),
            (Ok(ttr_ms), Some(partition)) => {
                scatter.add(&partition, index, (extend.token, ttr_ms), BATCH_JOBS_MAX / 2);
            }
        }
    }
    scatter
        .gather(submission, &mut replies, |leases, reply_to| PartitionRequest::Extend {
            leases,
            reply_to,
        })
        .await;
    let mut sessions = dispatcher.sessions.borrow_mut();
    for (token, extended) in tokens.into_iter().zip(replies.iter().flatten()) {
        match extended {
            Ok(extended) => sessions.set_expiry(token, extended.expires_at),
            Err(error) if matches!(error.code, Code::LeaseLost | Code::NotFound) => {
                sessions.drop_lease(token);
            }
            Err(_) => {}
        }
    }
    drop(sessions);
    reply(replies, Reply::Extended)
}

/// A job of an unknown shard was never put.
fn gone(replies: &mut [Option<Result<EndReply, Error>>], index: usize) {
    if let Some(entry) = replies.get_mut(index) {
        *entry = Some(Ok(EndReply::Gone));
    }
}
