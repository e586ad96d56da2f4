//! ack, nack, release, extend: what a token is good for.

use std::rc::Rc;

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{Ended, Extend, Nack, Release, check};
use dormouse_core::refusal::nothing_to_extend;

use super::{Scatter, places, put::fill, reply};
use crate::codec::nack::Ending;
use crate::dispatch::Desk;
use crate::partition::{Ask, BatchNo, FLIGHT_JOBS_MAX};

pub(super) async fn ack(desk: &Rc<Desk>, batch: BatchNo, tokens: Vec<Token>) -> Answer {
    check::batch(tokens.len())?;
    let mut replies = places(tokens.len());
    let mut scatter = Scatter::new();
    for (index, token) in tokens.into_iter().enumerate() {
        match desk.partition_of(token.id) {
            Some(partition) => scatter.add(&partition, index, token, FLIGHT_JOBS_MAX),
            None => gone(&mut replies, index),
        }
        desk.sessions.borrow_mut().drop_lease(token);
    }
    scatter.gather(batch, &mut replies, |tokens, to| Ask::Ack { tokens, to }).await;
    reply(replies, Reply::Ended)
}

pub(super) async fn nack(desk: &Rc<Desk>, batch: BatchNo, nacks: Vec<Nack>) -> Answer {
    check::batch(nacks.len())?;
    let ending = |nack: Nack| {
        let Nack { token, delay_ms, priority, error } = nack;
        let error = error.map(check::error_text);
        Ok(Ending {
            token,
            delay_ms: check::delay(delay_ms)?,
            priority,
            error,
            is_uncounted: false,
        })
    };
    let endings = nacks.into_iter().map(ending).collect();
    end(desk, batch, true, endings).await
}

pub(super) async fn release(desk: &Rc<Desk>, batch: BatchNo, releases: Vec<Release>) -> Answer {
    check::batch(releases.len())?;
    let ending = |release: Release| {
        let Release { token, delay_ms, priority } = release;
        let delay_ms = check::delay(delay_ms)?;
        Ok(Ending { token, delay_ms, priority, error: None, is_uncounted: false })
    };
    let endings = releases.into_iter().map(ending).collect();
    end(desk, batch, false, endings).await
}

/// As `release`, of leases whose holder is gone.
pub(super) async fn give_back(desk: &Rc<Desk>, batch: BatchNo, tokens: &[Token]) -> Answer {
    let ending = |&token| {
        Ok(Ending { token, delay_ms: None, priority: None, error: None, is_uncounted: true })
    };
    end(desk, batch, false, tokens.iter().map(ending).collect()).await
}

async fn end(
    desk: &Rc<Desk>,
    batch: BatchNo,
    spends: bool,
    endings: Vec<Result<Ending, Error>>,
) -> Answer {
    let mut replies = places(endings.len());
    let mut scatter = Scatter::new();
    for (index, ending) in endings.into_iter().enumerate() {
        match ending {
            Err(error) => fill(&mut replies, index, error),
            Ok(ending) => {
                let token = ending.token;
                match desk.partition_of(token.id) {
                    Some(partition) => {
                        scatter.add(&partition, index, ending, FLIGHT_JOBS_MAX / 2);
                    }
                    None => gone(&mut replies, index),
                }
                desk.sessions.borrow_mut().drop_lease(token);
            }
        }
    }
    let ask = |endings, to| Ask::End { spends, endings, to };
    scatter.gather(batch, &mut replies, ask).await;
    reply(replies, Reply::Ended)
}

pub(super) async fn extend(desk: &Rc<Desk>, batch: BatchNo, extends: Vec<Extend>) -> Answer {
    check::batch(extends.len())?;
    let mut replies = places(extends.len());
    let mut scatter = Scatter::new();
    let tokens: Vec<_> = extends.iter().map(|extend| extend.token).collect();
    for (index, extend) in extends.into_iter().enumerate() {
        let id: JobId = extend.token.id;
        match (check::ttr(extend.ttr_ms), desk.partition_of(id)) {
            (Err(error), _) => fill(&mut replies, index, error),
            (Ok(_), None) => fill(&mut replies, index, nothing_to_extend(id)),
            (Ok(ttr_ms), Some(partition)) => {
                scatter.add(&partition, index, (extend.token, ttr_ms), FLIGHT_JOBS_MAX / 2);
            }
        }
    }
    scatter.gather(batch, &mut replies, |leases, to| Ask::Extend { leases, to }).await;
    let mut sessions = desk.sessions.borrow_mut();
    for (token, extended) in tokens.into_iter().zip(replies.iter().flatten()) {
        match extended {
            Ok(extended) => sessions.prolong(token, extended.expires_at),
            Err(error) if matches!(error.code, Code::LeaseLost | Code::NotFound) => {
                sessions.drop_lease(token);
            }
            Err(_) => {}
        }
    }
    drop(sessions);
    reply(replies, Reply::Extended)
}

/// A job of no known shard was never put.
fn gone(replies: &mut [Option<Result<Ended, Error>>], index: usize) {
    if let Some(place) = replies.get_mut(index) {
        *place = Some(Ok(Ended::Gone));
    }
}
