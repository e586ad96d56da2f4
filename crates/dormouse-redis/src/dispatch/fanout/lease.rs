//! Commands that name a lease by its token: ack, nack, release, extend.

use std::rc::Rc;

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::Token;
use dormouse_core::op::{EndReply, Extend, Nack, Release, check};
use dormouse_core::refusal::nothing_to_extend;
use tokio::task::spawn_local;

use super::Fanout;
use super::scatter::{Routed, Scatter};
use crate::codec::nack::EndRequest;
use crate::outbox::Caller;
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

    pub(super) fn ack(self, tokens: Vec<Token>, caller: Caller) {
        let route = |token| Ok(self.route_end(token, token));
        let scatter = Scatter::new(tokens, |_| BATCH_JOBS_MAX, route);
        let request = |tokens, reply_to| PartitionRequest::Ack { tokens, reply_to };
        self.answer_items(scatter, caller, request, Reply::Ended);
    }

    pub(super) fn nack(self, nacks: Vec<Nack>, caller: Caller) {
        let scatter = self.ends(nacks, |nack| {
            let Nack { token, delay_ms, priority, error } = nack;
            let (delay_ms, error) = (check::delay(delay_ms)?, error.map(check::error_text));
            Ok(EndRequest { delay_ms, priority, error, ..EndRequest::of(token) })
        });
        let request = |endings, reply_to| PartitionRequest::End { spends: true, endings, reply_to };
        let dead_topics = scatter.as_ref().map(Scatter::with_dead_topics).unwrap_or_default();
        match scatter {
            Ok(scatter) if !dead_topics.is_empty() => {
                let (gathered, dispatcher) =
                    (scatter.gather(self, request), Rc::clone(self.dispatcher));
                spawn_local(async move {
                    let replies = gathered.await;
                    if replies.contains(&Ok(EndReply::Dead)) {
                        let fanout = Fanout { dispatcher: &dispatcher, submission: None };
                        fanout.send_letters_of(&dead_topics).await;
                    }
                    caller.answer(Ok(Reply::Ended(replies)));
                });
            }
            scatter => self.answer_items(scatter, caller, request, Reply::Ended),
        }
    }

    pub(super) fn release(self, releases: Vec<Release>, caller: Caller) {
        let scatter = self.ends(releases, |release| {
            let Release { token, delay_ms, priority } = release;
            Ok(EndRequest { delay_ms: check::delay(delay_ms)?, priority, ..EndRequest::of(token) })
        });
        self.answer_items(scatter, caller, PartitionRequest::release, Reply::Ended);
    }

    /// Releases the leases of a closed session; they are not counted as released by a caller.
    pub(super) async fn give_back(self, tokens: &[Token]) -> Result<(), Error> {
        let request = |token| Ok(EndRequest { is_uncounted: true, ..EndRequest::of(token) });
        self.ends(tokens.to_vec(), request)?.gather(self, PartitionRequest::release).await;
        Ok(())
    }

    /// The ends of leases; `request` checks one.
    fn ends<G>(
        self,
        given: Vec<G>,
        request: impl Fn(G) -> Result<EndRequest, Error>,
    ) -> Result<Scatter<EndRequest, EndReply>, Error> {
        let route = |given| request(given).map(|end| self.route_end(end.token, end));
        Scatter::new(given, |_| BATCH_JOBS_MAX / 2, route)
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
