//! What ack, nack, release, extend and kill share: one token or many in, a code for each out.

use axum::response::Response;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, Token};
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::Ended;
use hyper::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Verb;
use crate::client::unexpected;
use crate::http::App;
use crate::http::caller::Caller;
use crate::http::form::{Bounded, Failed, TokenOut, status_of_list};
use crate::http::problem::{Problem, status_of};
use crate::http::response::{HttpResult, json};
use crate::units::At;

/// The tokens of a request, and whether they came as a list.
pub(super) struct Tokens {
    tokens: Vec<Token>,
    is_list: bool,
}

/// A token of no job: ids begin at 1.
const NOBODYS: Token = Token { id: JobId(0), fence: 0 };

impl Tokens {
    /// From the fields `token` and `tokens`, of which one must be there.
    pub(super) fn read(
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

    /// The tokens to send, if the caller may do this with them.
    pub(super) async fn granted(
        &self,
        app: &App,
        caller: &Caller,
        verb: Verb,
    ) -> Result<Vec<Token>, Error> {
        let ids = self.tokens.iter().map(|token| token.id);
        let absent = caller.check_jobs(app, verb, ids).await?;
        let sent = |token: &Token| if absent.contains(&token.id) { NOBODYS } else { *token };
        Ok(self.tokens.iter().map(sent).collect())
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndedCode {
    /// As asked.
    Done,
    /// The last attempt is spent: the job is dead.
    Dead,
    /// The job is not there any more.
    Gone,
}

impl From<Ended> for EndedCode {
    fn from(ended: Ended) -> EndedCode {
        match ended {
            Ended::Done => EndedCode::Done,
            Ended::Dead => EndedCode::Dead,
            Ended::Gone => EndedCode::Gone,
        }
    }
}

/// What became of one lease.
#[derive(Serialize, ToSchema)]
#[schema(as = Ended)]
pub(crate) struct EndedOut {
    token: TokenOut,
    code: EndedCode,
    /// When the lease ends now; after an extend.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_at: Option<At>,
}

/// One lease that was not found as it should be.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndedFailed {
    token: TokenOut,
    #[serde(flatten)]
    failed: Failed,
}

/// One of several.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum EndedItem {
    /// Done.
    Done(EndedOut),
    /// Not done.
    Failed(EndedFailed),
}

/// What became of several leases, in the order they were sent.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndedResults {
    results: Vec<EndedItem>,
}

/// To `token`, or to `tokens`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the answer")]
pub(crate) enum EndedAnswer {
    /// To `token`.
    One(EndedOut),
    /// To `tokens`.
    Many(EndedResults),
}

/// The outcome of one item: its code, and when the lease ends now.
type Item = Result<(EndedCode, Option<u64>), Error>;

/// The items of a reply.
pub(super) fn items_of(reply: Reply) -> Result<Vec<Item>, Error> {
    match reply {
        Reply::Ended(items) => {
            Ok(items.into_iter().map(|item| item.map(|item| (item.into(), None))).collect())
        }
        Reply::Extended(items) => Ok(items
            .into_iter()
            .map(|item| item.map(|item| (EndedCode::Done, Some(item.expires_at))))
            .collect()),
        other => Err(unexpected(&other)),
    }
}

/// The items as they go out, with their statuses.
pub(super) fn results_of(tokens: &Tokens, items: Vec<Item>) -> (Vec<EndedItem>, Vec<StatusCode>) {
    let items = tokens.tokens.iter().zip(items).map(|(&token, item)| {
        let token = TokenOut(token);
        match item {
            Ok((code, expires_at)) => {
                let out = EndedOut { token, code, expires_at: expires_at.map(At) };
                (EndedItem::Done(out), StatusCode::OK)
            }
            Err(error) => {
                let status = status_of(error.code);
                (EndedItem::Failed(EndedFailed { token, failed: Failed::from(error) }), status)
            }
        }
    });
    items.unzip()
}

/// Sends the command and answers for its tokens.
pub(super) async fn end(app: &App, tokens: &Tokens, command: Command) -> HttpResult {
    let items = items_of(app.client.call(command).await?)?;
    if tokens.is_list { Ok(many(tokens, items)) } else { one(tokens, items) }
}

fn many(tokens: &Tokens, items: Vec<Item>) -> Response {
    let (results, statuses) = results_of(tokens, items);
    json(status_of_list(&statuses), &EndedResults { results })
}

fn one(tokens: &Tokens, items: Vec<Item>) -> HttpResult {
    let item = items.into_iter().next().unwrap_or_else(|| Err(unexpected(&Reply::Done)));
    let (code, expires_at) = item?;
    let token = *tokens.tokens.first().ok_or_else(|| unexpected(&Reply::Done))?;
    let out = EndedOut { token: TokenOut(token), code, expires_at: expires_at.map(At) };
    Ok(json(StatusCode::OK, &out))
}
