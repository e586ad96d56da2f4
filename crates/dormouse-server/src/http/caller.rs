//! Who calls, and whether they may.

use axum::extract::FromRequestParts;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::op::Target;
use hyper::header::AUTHORIZATION;
use hyper::http::request::Parts;

use super::App;
use super::problem::Problem;
use crate::access::{Grant, Verb};
use crate::desk::unexpected;

/// A caller whose token is known, or anybody where no token is configured.
pub(crate) struct Caller {
    grant: Grant,
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Caller, Problem> {
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = header.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        Ok(Caller { grant: app.access.grant(bearer)? })
    }
}

impl Caller {
    /// May they do this on this topic, or with the lock of this name?
    pub(crate) fn check(&self, verb: Verb, topic: &str) -> Result<(), Error> {
        self.grant.check(verb, topic)
    }

    /// May they do this, which concerns no topic or all?
    pub(crate) fn check_verb(&self, verb: Verb) -> Result<(), Error> {
        self.grant.check_verb(verb)
    }

    /// What they may do.
    pub(crate) fn grant(&self) -> &Grant {
        &self.grant
    }

    /// May they do this with these jobs, whose topics only the backend knows? An id is never used
    /// again, so what is found now stays true; a job that is not there is nobody's.
    pub(crate) async fn check_jobs(
        &self,
        app: &App,
        verb: Verb,
        ids: impl Iterator<Item = JobId>,
    ) -> Result<(), Error> {
        if self.grant.covers_all(verb) {
            return Ok(());
        }
        if !self.grant.may_somewhere(verb) {
            return self.grant.check_verb(verb);
        }
        let targets = ids.map(Target::Id).collect();
        match app.desk.ask(Command::Get(targets)).await? {
            Reply::Views(views) => {
                let found = views.iter().flatten();
                found.into_iter().try_for_each(|view| self.check(verb, view.topic.as_str()))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// May they do this with this job?
    pub(crate) async fn check_target(
        &self,
        app: &App,
        verb: Verb,
        target: &Target,
    ) -> Result<(), Error> {
        match target {
            Target::Key { topic, .. } => self.check(verb, topic.as_str()),
            Target::Id(id) => self.check_jobs(app, verb, std::iter::once(*id)).await,
        }
    }
}
