//! The request and the response of the verbs that take many jobs by their ids: a list in, a code
//! for each out.

use std::collections::BTreeSet;

use axum::extract::{FromRequest, FromRequestParts, Request};
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use super::change::{ChangedCode, ChangedOut};
use super::kill::KilledOut;
use crate::access::Verb;
use crate::http::App;
use crate::http::caller::{Caller, absent_job};
use crate::http::form::{Bounded, CodeOut, IdOut, StateOut, status_of_list};
use crate::http::params::Params;
use crate::http::payload::Unread;
use crate::http::problem::{Problem, status_of};
use crate::http::response::{HttpResult, json};
use crate::limits::IDS_MAX;

use dormouse_core::op::ChangeReply;
use hyper::StatusCode;

/// The ids of a request.
pub(super) type Ids = Bounded<String, IDS_MAX>;

/// A body with the field `ids`.
pub(super) trait IdsForm: DeserializeOwned + Send {
    const VERB: Verb;

    fn ids(&self) -> &Ids;
}

macro_rules! ids_form {
    ($form:ty, $verb:expr) => {
        impl $crate::http::route::ids::IdsForm for $form {
            const VERB: $crate::access::Verb = $verb;

            fn ids(&self) -> &$crate::http::route::ids::Ids {
                &self.ids
            }
        }
    };
}
pub(super) use ids_form;

/// A request about many jobs, by a caller who may do that to all of them that it may see.
pub(super) struct IdsRequest<F> {
    pub(super) form: F,
    ids: Vec<JobId>,
    /// Those that do not exist for this caller.
    absent: BTreeSet<JobId>,
}

impl<F: IdsForm> FromRequest<App> for IdsRequest<F> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<IdsRequest<F>, Problem> {
        let (mut parts, body) = request.into_parts();
        let caller = Caller::from_request_parts(&mut parts, app).await?;
        let params = Params::from_request_parts(&mut parts, app).await?;
        params.finish()?;
        caller.check_somewhere(F::VERB)?;
        let form: F = Unread::new(body, caller.clone()).json(app).await?;
        let Bounded(texts) = form.ids();
        if texts.is_empty() || texts.len() > IDS_MAX {
            let given = if texts.is_empty() { "no id" } else { "more ids" };
            return Err(Error::invalid(format!("ids has {given}; give 1 to {IDS_MAX}")).into());
        }
        let ids = texts.iter().map(|id| id.parse()).collect::<Result<Vec<JobId>, _>>()?;
        let absent = caller.check_jobs(app, F::VERB, ids.iter().copied()).await?;
        Ok(IdsRequest { form, ids, absent })
    }
}

impl<F> IdsRequest<F> {
    /// The jobs to ask the backend about, in order.
    pub(super) fn present(&self) -> impl Iterator<Item = JobId> + '_ {
        self.ids.iter().filter(|id| !self.absent.contains(id)).copied()
    }

    /// The result of each id, from the replies about those that are present.
    pub(super) fn results<R>(
        self,
        replies: Vec<Result<R, Error>>,
    ) -> impl Iterator<Item = (JobId, Result<R, Error>)> {
        let mut replies = replies.into_iter();
        self.ids.into_iter().map(move |id| {
            let reply = if self.absent.contains(&id) { None } else { replies.next() };
            (id, reply.unwrap_or_else(|| Err(absent_job(id))))
        })
    }
}

/// A job for which the request failed.
#[derive(Serialize, ToSchema)]
pub(crate) struct IdFailed {
    id: IdOut,
    /// The stable code.
    code: CodeOut,
    /// What was wrong, the limit, and the fix.
    detail: String,
    /// Whether the same can succeed later.
    retryable: bool,
    /// The state that forbids it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    state: Option<StateOut>,
}

impl IdFailed {
    pub(super) fn new(id: JobId, error: Error) -> (IdFailed, StatusCode) {
        let status = status_of(error.code);
        let failed = IdFailed {
            id: IdOut(id),
            code: CodeOut(error.code.as_str()),
            retryable: error.code.is_retryable(),
            state: error.job.map(|(_, state)| StateOut::from(state)),
            detail: error.text.into_owned(),
        };
        (failed, status)
    }
}

/// The result of one of several jobs that were to be changed.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ChangedItem {
    /// It is changed.
    Changed(ChangedOut),
    /// It is dead.
    Killed(KilledOut),
    /// It failed.
    Failed(IdFailed),
}

/// The results of several jobs, in the order of the request.
#[derive(Serialize, ToSchema)]
pub(crate) struct ChangedResults {
    results: Vec<ChangedItem>,
}

/// Answers for jobs that were to be changed.
pub(super) fn answer_changes<R>(
    results: impl Iterator<Item = (JobId, Result<R, Error>)>,
    item: impl Fn(JobId, R) -> ChangedItem,
) -> HttpResult {
    let result = |(id, reply): (JobId, Result<R, Error>)| match reply {
        Ok(reply) => (item(id, reply), StatusCode::OK),
        Err(error) => {
            let (failed, status) = IdFailed::new(id, error);
            (ChangedItem::Failed(failed), status)
        }
    };
    let (results, statuses): (Vec<ChangedItem>, Vec<StatusCode>) = results.map(result).unzip();
    Ok(json(status_of_list(&statuses), &ChangedResults { results }))
}

/// The same where each reply tells what the job was.
pub(super) fn answer_code(
    code: ChangedCode,
    results: impl Iterator<Item = (JobId, Result<ChangeReply, Error>)>,
) -> HttpResult {
    answer_changes(results, |_, reply| ChangedItem::Changed(ChangedOut::new(code, reply)))
}
