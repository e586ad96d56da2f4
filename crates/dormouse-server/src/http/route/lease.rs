//! The request and the response of ack, nack, release, extend and kill: one token or a list of them
//! in, a code for each out.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::Response;
use dormouse_core::command::{Operation, only};
use dormouse_core::error::Error;
use dormouse_core::job::Token;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{ChainReply, EndReply, ExtendReply, PutReply};
use hyper::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use crate::access::{NO_JOB, Verb};
use crate::http::App;
use crate::http::caller::Caller;
use crate::http::form::{Bounded, Failed, PutOut, TokenOut, status_of_list};
use crate::http::params::Params;
use crate::http::payload::Unread;
use crate::http::problem::{Problem, status_of};
use crate::http::response::{HttpResult, json};
use crate::units::At;

/// A body with the fields `token` and `tokens`, of which a request has one.
pub(super) trait LeaseForm: DeserializeOwned + Send {
    const VERB: Verb;

    fn token(&self) -> Option<&str>;
    fn tokens(&self) -> Option<&Bounded<String, BATCH_MAX>>;
}

macro_rules! lease_form {
    ($form:ty, $verb:expr) => {
        impl $crate::http::route::lease::LeaseForm for $form {
            const VERB: $crate::access::Verb = $verb;

            fn token(&self) -> Option<&str> {
                self.token.as_deref()
            }

            fn tokens(&self) -> Option<&Bounded<String, BATCH_MAX>> {
                self.tokens.as_ref()
            }
        }
    };
}
pub(super) use lease_form;

/// A request to end or extend leases, by a caller who may do that.
pub(super) struct LeaseRequest<F> {
    pub(super) caller: Caller,
    pub(super) form: F,
    pub(super) tokens: Tokens,
    /// The tokens to send: those of absent jobs are masked, as [`Caller::check_jobs`] wants it.
    pub(super) masked: Vec<Token>,
}

/// The tokens of a request, and whether it had a list.
pub(super) struct Tokens {
    tokens: Vec<Token>,
    is_list: bool,
}

/// A token of no job.
const NO_TOKEN: Token = Token { id: NO_JOB, fence: 0 };

impl<F: LeaseForm> FromRequest<App> for LeaseRequest<F> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<LeaseRequest<F>, Problem> {
        let (mut parts, body) = request.into_parts();
        let caller = Caller::from_request_parts(&mut parts, app).await?;
        let params = Params::from_request_parts(&mut parts, app).await?;
        params.finish()?;
        caller.check_somewhere(F::VERB)?;
        let form: F = Unread::new(body, caller.clone()).json(app).await?;
        let tokens = Tokens::read(form.token(), form.tokens())?;
        let masked = tokens.masked(app, &caller, F::VERB).await?;
        Ok(LeaseRequest { caller, form, tokens, masked })
    }
}

impl Tokens {
    pub(super) fn is_list(&self) -> bool {
        self.is_list
    }

    fn read(
        token: Option<&str>,
        tokens: Option<&Bounded<String, BATCH_MAX>>,
    ) -> Result<Tokens, Problem> {
        match (token, tokens) {
            (Some(token), None) => Ok(Tokens { tokens: vec![token.parse()?], is_list: false }),
            (None, Some(Bounded(tokens))) => {
                let tokens = tokens.iter().map(|token| token.parse()).collect::<Result<_, _>>()?;
                Ok(Tokens { tokens, is_list: true })
            }
            _ => Err(Problem::malformed("give either token or tokens")),
        }
    }

    async fn masked(&self, app: &App, caller: &Caller, verb: Verb) -> Result<Vec<Token>, Error> {
        let ids = self.tokens.iter().map(|token| token.id);
        let absent = caller.check_jobs(app, verb, ids).await?;
        let mask = |token: &Token| if absent.contains(&token.id) { NO_TOKEN } else { *token };
        Ok(self.tokens.iter().map(mask).collect())
    }
}

/// The result of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndedCode {
    /// It was ended or extended.
    Done,
    /// The attempt failed; the next one is at `due_at`.
    Retry,
    /// The last attempt is spent: the job is dead.
    Dead,
    /// The job no longer exists.
    Gone,
}

impl From<EndReply> for EndedCode {
    fn from(ended: EndReply) -> EndedCode {
        match ended {
            EndReply::Done => EndedCode::Done,
            EndReply::Retry { .. } => EndedCode::Retry,
            EndReply::Dead => EndedCode::Dead,
            EndReply::Gone => EndedCode::Gone,
        }
    }
}

/// The result of one lease.
#[derive(Serialize, ToSchema)]
#[schema(as = Ended)]
pub(crate) struct EndedOut {
    token: TokenOut,
    code: EndedCode,
    /// The new end of the lease; only after an extend.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_at: Option<At>,
    /// When the job is due again; only after a nack.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    due_at: Option<At>,
    /// The jobs that were put; only after an ack with `put`. Empty if the job was gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    put: Option<Vec<PutOut>>,
}

/// A lease for which the request failed.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndedFailed {
    token: TokenOut,
    #[serde(flatten)]
    failed: Failed,
}

/// The result of one of several leases.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum EndedItem {
    /// It succeeded.
    Done(EndedOut),
    /// It failed.
    Failed(EndedFailed),
}

/// The results of several leases, in the order of the request.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndedResults {
    results: Vec<EndedItem>,
}

/// The response to `token`, or to `tokens`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the answer")]
pub(crate) enum EndedAnswer {
    /// To `token`.
    One(EndedOut),
    /// To `tokens`.
    Many(EndedResults),
}

/// The reply for one lease.
pub(super) struct LeaseReply {
    code: EndedCode,
    expires_at: Option<u64>,
    due_at: Option<u64>,
    put: Option<Vec<PutReply>>,
}

impl From<EndReply> for LeaseReply {
    fn from(ended: EndReply) -> LeaseReply {
        let due_at = match ended {
            EndReply::Retry { due_at } => Some(due_at),
            EndReply::Done | EndReply::Dead | EndReply::Gone => None,
        };
        LeaseReply { code: ended.into(), expires_at: None, due_at, put: None }
    }
}

impl From<ExtendReply> for LeaseReply {
    fn from(extended: ExtendReply) -> LeaseReply {
        let expires_at = Some(extended.expires_at);
        LeaseReply { code: EndedCode::Done, expires_at, due_at: None, put: None }
    }
}

impl From<ChainReply> for LeaseReply {
    fn from(chain: ChainReply) -> LeaseReply {
        LeaseReply { put: Some(chain.puts), ..chain.end.into() }
    }
}

impl LeaseReply {
    fn out(self, token: Token) -> EndedOut {
        let LeaseReply { code, expires_at, due_at, put } = self;
        let (expires_at, due_at) = (expires_at.map(At), due_at.map(At));
        let put = put.map(|replies| replies.into_iter().map(PutOut::from).collect());
        EndedOut { token: TokenOut(token), code, expires_at, due_at, put }
    }
}

/// Sends the operation and answers for its tokens.
pub(super) async fn end<O, R>(
    app: &App,
    caller: &Caller,
    tokens: &Tokens,
    operation: O,
) -> HttpResult
where
    O: Operation<Reply = Vec<Result<R, Error>>>,
    R: Into<LeaseReply>,
{
    answer(tokens, caller.call(app, operation).await?)
}

/// Answers for the tokens of a request.
pub(super) fn answer<R: Into<LeaseReply>>(
    tokens: &Tokens,
    replies: Vec<Result<R, Error>>,
) -> HttpResult {
    match tokens.tokens.as_slice() {
        [token] if !tokens.is_list => Ok(json(StatusCode::OK, &only(replies)?.into().out(*token))),
        _ => Ok(many(tokens, replies)),
    }
}

fn many<R: Into<LeaseReply>>(tokens: &Tokens, replies: Vec<Result<R, Error>>) -> Response {
    let (results, statuses) = results_of(tokens, replies);
    json(status_of_list(&statuses), &EndedResults { results })
}

/// The result of each token, in the order of the request, with its status.
pub(super) fn results_of<R: Into<LeaseReply>>(
    tokens: &Tokens,
    replies: Vec<Result<R, Error>>,
) -> (Vec<EndedItem>, Vec<StatusCode>) {
    let results = tokens.tokens.iter().zip(replies).map(|(&token, reply)| match reply {
        Ok(reply) => (EndedItem::Done(reply.into().out(token)), StatusCode::OK),
        Err(error) => {
            let status = status_of(error.code);
            let failed = EndedFailed { token: TokenOut(token), failed: Failed::from(error) };
            (EndedItem::Failed(failed), status)
        }
    });
    results.unzip()
}
