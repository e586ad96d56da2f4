//! The caller of a request and its rights.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use dormouse_core::backend::Request;
use dormouse_core::command::{Operation, Reply};
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::op::Target;
use hyper::header::AUTHORIZATION;
use hyper::http::request::Parts;

use super::App;
use super::problem::Problem;
use crate::access::{Grant, Verb};
use crate::client::{BatchReplies, PendingBatch, unnumbered};
use crate::visitor::{Address, Claimant, LastCaller, Visitor};

/// A caller with a known token, or any caller where no token is configured.
#[derive(Clone)]
pub(crate) struct Caller {
    grant: Grant,
    claimant: Claimant,
    visitor: Option<Arc<Visitor>>,
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Caller, Problem> {
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = header.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let visitor = parts.extensions.get::<Arc<Visitor>>();
        match app.access.grant(bearer) {
            Ok(grant) => {
                visitor.inspect(|visitor| {
                    visitor.welcome();
                    visitor.note_caller(grant.caller());
                });
                let here = Claimant::Address(Address::Local);
                let claimant = visitor.map_or(here, |visitor| visitor.claimant(grant.token_name()));
                let caller = Caller { grant, claimant, visitor: visitor.cloned() };
                // For the body, which may take its time to arrive.
                parts.extensions.insert(caller.clone());
                Ok(caller)
            }
            Err(error) => {
                visitor.inspect(|visitor| visitor.note_caller(LastCaller::default()));
                // A wrong token, not a missing one.
                if let (Some(_), Some(visitor)) = (bearer, visitor) {
                    tokio::time::sleep(app.access.refused(visitor)).await;
                }
                Err(error.into())
            }
        }
    }
}

impl Caller {
    /// As [`Grant::check`].
    pub(crate) fn check(&self, verb: Verb, topic: &str) -> Result<(), Error> {
        self.grant.check(verb, topic)
    }

    /// As [`Grant::check_verb`].
    pub(crate) fn check_verb(&self, verb: Verb) -> Result<(), Error> {
        self.grant.check_verb(verb)
    }

    /// As [`Grant::check_somewhere`].
    pub(crate) fn check_somewhere(&self, verb: Verb) -> Result<(), Error> {
        self.grant.check_somewhere(verb)
    }

    /// The caller's rights.
    pub(crate) fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Whose shares its requests use.
    pub(crate) fn claimant(&self) -> &Claimant {
        &self.claimant
    }

    /// Whether the caller's rights are what they were when it called.
    pub(crate) fn judge(&self, app: &App) -> Result<(), Error> {
        app.access.judge(&self.grant)
    }

    /// As [`Access::check_ttr`](crate::access::Access::check_ttr).
    pub(crate) fn check_ttr(
        &self,
        app: &App,
        field: &str,
        span_ms: Option<i64>,
        name: Option<&str>,
    ) -> Result<(), Error> {
        app.access.check_ttr(&self.grant, field, span_ms, name)
    }

    /// Sends an operation that may wait. It ends when the server stops, and when the caller's
    /// rights change.
    pub(crate) async fn call_waiting<O: Operation>(
        &self,
        app: &App,
        operation: O,
    ) -> Result<O::Reply, Error> {
        let requests = vec![unnumbered(operation)];
        let batch = self.submit(app, requests)?;
        O::from_reply(self.wait(app, batch).await?.next_answer()?)
    }

    /// Sends requests that may wait; what they take counts for the caller.
    pub(crate) fn submit(&self, app: &App, requests: Vec<Request>) -> Result<PendingBatch, Error> {
        app.client.submit_of(self.visitor.as_ref(), requests, self.grant.holder())
    }

    /// Sends an operation that does not wait; what it takes counts for the caller.
    pub(crate) async fn call<O: Operation>(
        &self,
        app: &App,
        operation: O,
    ) -> Result<O::Reply, Error> {
        let batch = app.client.submit(vec![unnumbered(operation)], self.grant.holder())?;
        O::from_reply(batch.await.next_answer()?)
    }

    /// Waits for the replies of a batch, as `call_waiting` does. What was granted with rights that
    /// are no longer the caller's is given back.
    async fn wait(&self, app: &App, mut batch: PendingBatch) -> Result<BatchReplies, Error> {
        let replies = tokio::select! {
            biased;
            replies = app.client.wait(&mut batch) => replies,
            error = app.access.outdated(&self.grant) => return Err(error),
        };
        self.judge(app).map(|()| replies)
    }

    /// As `wait`, for a batch of which a part is done whatever becomes of the rest: only what
    /// reserves is refused then, and the other replies tell what was done.
    pub(crate) async fn wait_for_all(&self, app: &App, mut batch: PendingBatch) -> BatchReplies {
        let mut replies = tokio::select! {
            biased;
            replies = app.client.wait(&mut batch) => replies,
            _ = app.access.outdated(&self.grant) => {
                batch.withdraw();
                batch.await
            }
        };
        if let Err(error) = self.judge(app) {
            replies.refuse_some(|reply| match reply {
                Reply::Jobs(_) => Err(error.clone()),
                _ => Ok(()),
            });
        }
        replies
    }

    /// As [`Grant::check_jobs`].
    pub(crate) async fn check_jobs(
        &self,
        app: &App,
        verb: Verb,
        ids: impl Iterator<Item = JobId>,
    ) -> Result<BTreeSet<JobId>, Error> {
        self.grant.check_jobs(&app.client, verb, ids).await
    }

    /// Whether the verb is allowed on the topic of this job.
    pub(crate) async fn check_target(
        &self,
        app: &App,
        verb: Verb,
        target: &Target,
    ) -> Result<(), Error> {
        match target {
            Target::Key { topic, .. } => self.check(verb, topic.as_str()),
            Target::Id(id) => {
                let absent = self.check_jobs(app, verb, std::iter::once(*id)).await?;
                if absent.is_empty() {
                    return Ok(());
                }
                Err(absent_job(*id))
            }
        }
    }
}

/// The answer about a job that does not exist for a caller.
pub(super) fn absent_job(id: JobId) -> Error {
    Error::not_found(format!("job {id} does not exist: it is done, or was never put"))
}
