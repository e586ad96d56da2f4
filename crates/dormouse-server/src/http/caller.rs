//! Who calls, and whether they may.

use std::collections::BTreeSet;

use axum::extract::FromRequestParts;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
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

    /// May they do this with these jobs, whose topics only the backend knows? Gives those that are
    /// not there: they may come to be before the next command, in a topic nobody asked about, so
    /// who is limited to some topics must not name them again.
    pub(crate) async fn check_jobs(
        &self,
        app: &App,
        verb: Verb,
        ids: impl Iterator<Item = JobId>,
    ) -> Result<BTreeSet<JobId>, Error> {
        let mut absent = BTreeSet::new();
        if self.grant.covers_all(verb) {
            return Ok(absent);
        }
        if !self.grant.may_somewhere(verb) {
            return self.grant.check_verb(verb).map(|()| absent);
        }
        let mut unknown: Vec<JobId> = ids.collect();
        while !unknown.is_empty() {
            let targets = unknown.iter().copied().map(Target::Id).collect();
            let Reply::Views(views) = app.desk.ask(Command::Get(targets)).await? else {
                return Err(unexpected(&Reply::Done));
            };
            let mut later = Vec::new();
            for (id, view) in unknown.into_iter().zip(views) {
                match view {
                    Ok(view) => self.check(verb, view.topic.as_str())?,
                    Err(error) if error.code == Code::NotFound => drop(absent.insert(id)),
                    // It did not fit into this reply: the next one begins with it.
                    Err(error) if error.code == Code::TooLarge => later.push(id),
                    Err(error) => return Err(error),
                }
            }
            unknown = later;
        }
        Ok(absent)
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
            Target::Id(id) => {
                let absent = self.check_jobs(app, verb, std::iter::once(*id)).await?;
                if absent.is_empty() {
                    return Ok(());
                }
                Err(Error::not_found(format!("job {id} is not there; it is done, or never was")))
            }
        }
    }
}
