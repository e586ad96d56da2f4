//! Commands that name a lease by its token: ack, nack, release, extend.

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::Token;
use dormouse_core::op::{EndReply, Extend, Nack, Release, check};
use dormouse_core::refusal::nothing_to_extend;

use super::Fanout;
use super::scatter::{Routed, Scatter};
use crate::codec::nack::EndRequest;
use crate::partition::PartitionRequest;
use crate::scheduler::BATCH_JOBS_MAX;

impl Fanout<'_> {
    /// The end of a lease goes to the partition of its job. A job of an unknown shard was never
    /// put.
    pub(super) fn route_end<I>(self, token: Token, item: I) -> Routed<I, EndReply> {
        self.dispatcher.sessions.borrow_mut().drop_lease(token);
        match self.dispatcher.partition_of(token.id) {
            Some(partition) => Routed::To(partition, item),
            None => Routed::Done(EndReply::Gone),
        }
    }

    pub(super) async fn ack(self, tokens: Vec<Token>) -> Answer {
        let route = |token| Ok(self.route_end(token, token));
        let scatter = Scatter::new(tokens, |_| BATCH_JOBS_MAX, route)?;
        let request = |tokens, reply_to| PartitionRequest::Ack { tokens, reply_to };
        Ok(Reply::Ended(scatter.gather(self, request).await))
    }

    pub(super) async fn nack(self, nacks: Vec<Nack>) -> Answer {
        self.end(true, nacks, |nack: Nack| {
            let Nack { token, delay_ms, priority, error } = nack;
            let (delay_ms, error) = (check::delay(delay_ms)?, error.map(check::error_text));
            Ok(EndRequest { token, delay_ms, priority, error, is_uncounted: false })
        })
        .await
    }

    pub(super) async fn release(self, releases: Vec<Release>) -> Answer {
        self.end(false, releases, |release: Release| {
            let Release { token, delay_ms, priority } = release;
            let delay_ms = check::delay(delay_ms)?;
            Ok(EndRequest { token, delay_ms, priority, error: None, is_uncounted: false })
        })
        .await
    }

    /// Releases the leases of a closed session; they are not counted as released by a caller.
    pub(super) async fn give_back(self, tokens: &[Token]) -> Answer {
        let request = |token| EndRequest {
            token,
            delay_ms: None,
            priority: None,
            error: None,
            is_uncounted: true,
        };
        self.end(false, tokens.to_vec(), |token| Ok(request(token))).await
    }

    /// Ends leases; `request` checks one.
    async fn end<G>(
        self,
        spends: bool,
        given: Vec<G>,
        request: impl Fn(G) -> Result<EndRequest, Error>,
    ) -> Answer {
        let route = |given| request(given).map(|end| self.route_end(end.token, end));
        let scatter = Scatter::new(given, |_| BATCH_JOBS_MAX / 2, route)?;
        let request = |endings, reply_to| PartitionRequest::End { spends, endings, reply_to };
        Ok(Reply::Ended(scatter.gather(self, request).await))
    }

    pub(super) async fn extend(self, extends: Vec<Extend>) -> Answer {
        let tokens: Vec<_> = extends.iter().map(|extend| extend.token).collect();
        let scatter = Scatter::new(
            extends,
            |_| BATCH_JOBS_MAX / 2,
            |extend: Extend| {
                let (token, ttr_ms) = (extend.token, check::ttr(extend.ttr_ms)?);
                let partition = self.dispatcher.partition_of(token.id);
                let partition = partition.ok_or_else(|| nothing_to_extend(token.id))?;
                Ok(Routed::To(partition, (token, ttr_ms)))
            },
        )?;
        let request = |leases, reply_to| PartitionRequest::Extend { leases, reply_to };
        let replies = scatter.gather(self, request).await;
        let mut sessions = self.dispatcher.sessions.borrow_mut();
        for (token, extended) in tokens.into_iter().zip(&replies) {
            match extended {
                Ok(extended) => sessions.set_expiry(token, extended.expires_at),
                Err(error) if matches!(error.code, Code::LeaseLost | Code::NotFound) => {
                    sessions.drop_lease(token);
                }
                Err(_) => {}
            }
        }
        drop(sessions);
        Ok(Reply::Extended(replies))
    }
}
