//! ack: the work is done. It may include the next reserve, which saves a worker a round trip, and
//! the jobs that come after the acked one.

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use dormouse_core::command::{Operation as _, Reply};
use dormouse_core::error::Error;
use dormouse_core::limits::{BATCH_MAX, CHAIN_PUTS_MAX};
use dormouse_core::op::{Ack, Chain, LeasedJob, Put, Reserve, refused_put};
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::lease::{
    EndedItem, EndedOut, LeaseReply, LeaseRequest, answer, end, lease_form, results_of,
};
use super::push::check_urls;
use super::reserve::{check_reserve, fitting};
use crate::access::Verb;
use crate::client::unnumbered;
use crate::http::App;
use crate::http::api::{AckProblems, BodyProblems, Problems};
use crate::http::caller::Caller;
use crate::http::form::{Bounded, ChainedForm, Failed, LeasedOut, PutForm, ReserveForm, TokenOut};
use crate::http::payload::check_object;
use crate::http::problem::Problem;
use crate::http::response::{HttpResult, json, with_custody};

/// Leases to end.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Ack)]
pub(crate) struct AckForm {
    /// The token of one lease.
    #[schema(value_type = Option<TokenOut>)]
    token: Option<String>,
    /// The tokens of several leases.
    #[schema(value_type = Option<Vec<TokenOut>>, max_items = 4096)]
    tokens: Option<Bounded<String, BATCH_MAX>>,
    /// Jobs to put with the ack of `token`: all of it is done, or nothing.
    #[schema(value_type = Option<Vec<ChainedForm>>, min_items = 1, max_items = 100)]
    put: Option<Bounded<Box<RawValue>, CHAIN_PUTS_MAX>>,
    /// A reserve to execute after the acks.
    reserve: Option<ReserveForm>,
}

lease_form!(AckForm, Verb::Ack);

/// The response to `token`; or to `tokens`, or with `reserve`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the answer")]
pub(crate) enum AckAnswer {
    /// To `token`.
    One(EndedOut),
    /// To `tokens`, or with `reserve`.
    Many(AckResults<'static>),
}

/// The results of several leases, and the next jobs.
#[derive(Serialize, ToSchema)]
pub(crate) struct AckResults<'a> {
    results: Vec<EndedItem>,
    /// Only with `reserve`.
    #[schema(required = false)]
    jobs: Vec<LeasedOut<'a>>,
    /// Why the reserve was refused, if it was; the acks are done nevertheless.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reserve_failed: Option<Failed>,
}

/// End leases: the work is done, the jobs are removed.
///
/// With `put`, the jobs that come after it are put in the same step. If one of them is refused,
/// nothing is done, and the lease goes on.
#[utoipa::path(
    post,
    path = "/v1/ack",
    tag = "leases",
    request_body = AckForm,
    responses(
        (status = 200, description = "The result of each token", body = AckAnswer),
        Problems, BodyProblems, AckProblems
    )
)]
pub(super) async fn ack(State(app): State<App>, request: LeaseRequest<AckForm>) -> HttpResult {
    let LeaseRequest { caller, form, tokens, masked } = request;
    let reserve = match form.reserve {
        Some(form) => {
            let reserve = form.into_reserve()?;
            check_reserve(&app, &caller, &reserve)?;
            Some(reserve)
        }
        None => None,
    };
    let Some(Bounded(puts)) = form.put else {
        let has_none = masked.is_empty();
        let ack = Ack(masked);
        let Some(reserve) = reserve else { return end(&app, &caller, &tokens, ack).await };
        let read = |reply| Ack::from_reply(reply).map(|items| results_of(&tokens, items).0);
        return with_reserve(&app, &caller, ack, reserve, has_none, read).await;
    };
    let [token] = masked[..] else { return Err(one_token()) };
    if tokens.is_list() {
        return Err(one_token());
    }
    let puts = read_puts(&app, &caller, &puts)?;
    for (index, judged) in check_urls(&app, &puts).await?.into_iter().enumerate() {
        judged.map_err(|error| refused_put(index, error))?;
    }
    let chain = Chain { token, puts };
    let Some(reserve) = reserve else {
        let reply = caller.call(&app, chain).await?;
        return answer(&tokens, vec![Ok(reply)]);
    };
    let ended = LeaseReply::from(caller.call(&app, chain).await?);
    // Not in one batch with the chain: its jobs are found once they are durable.
    let reserved = caller.call_waiting(&app, reserve).await;
    Ok(with_jobs(&app, results_of(&tokens, vec![Ok(ended)]).0, reserved))
}

fn one_token() -> Problem {
    Problem::malformed("put belongs to one job: give token instead of tokens")
}

/// The puts of a chain, by a caller who may do each of them.
fn read_puts(app: &App, caller: &Caller, items: &[Box<RawValue>]) -> Result<Vec<Put>, Problem> {
    let check = |put: &Put| {
        caller.check(Verb::Put, put.topic.as_str())?;
        caller.check_ttr(app, "ttr", put.ttr_ms, Some(put.topic.as_str()))
    };
    let mut puts = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let put = read_put(item).map_err(|reason| {
            let number = index + 1;
            Problem::malformed(format!("put {number} of the chain: {reason}; nothing was done"))
        })?;
        check(&put).map_err(|error| refused_put(index, error))?;
        puts.push(put);
    }
    Ok(puts)
}

/// Parses one put; the error says what is wrong with it.
fn read_put(item: &RawValue) -> Result<Put, String> {
    // A copy of this put alone: the body may keep it.
    let source = Bytes::copy_from_slice(item.get().as_bytes());
    check_object(&source)?;
    let form: PutForm<'_> = serde_json::from_slice(&source)
        .map_err(|error| format!("it cannot be read: {error}; docs/http.md has the fields"))?;
    form.into_chained(&source)
}

/// Sends what ends leases, and a reserve behind it.
async fn with_reserve(
    app: &App,
    caller: &Caller,
    ending: Ack,
    reserve: Reserve,
    ends_nothing: bool,
    read: impl FnOnce(Reply) -> Result<Vec<EndedItem>, Error>,
) -> Result<Response, Problem> {
    let requests = vec![unnumbered(ending), unnumbered(reserve)];
    let batch = caller.submit(app, requests)?;
    let mut replies = caller.wait_for_all(app, batch).await;
    if ends_nothing {
        // Nothing was done: the call is what became of its reserve, which is undone here.
        caller.judge(app)?;
    }
    let (acked, reserved) = (replies.next_answer(), replies.next_answer());
    // The acks are done even if the reserve failed.
    let reserved = reserved.and_then(Reserve::from_reply);
    Ok(with_jobs(app, read(acked?)?, reserved))
}

/// The results of leases, and the jobs that were reserved, or why none were.
fn with_jobs(
    app: &App,
    results: Vec<EndedItem>,
    reserved: Result<Vec<LeasedJob>, Error>,
) -> Response {
    let (jobs, custody, reserve_failed) = match reserved.and_then(|jobs| fitting(app, jobs)) {
        Ok((jobs, custody)) => (jobs, Some(custody), None),
        Err(error) => (Vec::new(), None, Some(Failed::from(error))),
    };
    let jobs = jobs.iter().map(LeasedOut::from).collect();
    let response = json(StatusCode::OK, &AckResults { results, jobs, reserve_failed });
    match custody {
        Some(custody) => with_custody(response, custody),
        None => response,
    }
}
