//! ack: the work is done. It may include the next reserve, which saves a worker a round trip.

use axum::extract::State;
use dormouse_core::command::Operation as _;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Ack, Reserve};
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::lease::{EndedItem, EndedOut, LeaseRequest, end, lease_form, results_of};
use super::reserve::{check_reserve, fitting};
use crate::access::Verb;
use crate::client::unnumbered;
use crate::http::App;
use crate::http::api::{BodyProblems, EndProblems, Problems};
use crate::http::form::{Bounded, Failed, LeasedOut, ReserveForm, TokenOut};
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
#[utoipa::path(
    post,
    path = "/v1/ack",
    tag = "leases",
    request_body = AckForm,
    responses(
        (status = 200, description = "The result of each token", body = AckAnswer),
        Problems, BodyProblems, EndProblems
    )
)]
pub(super) async fn ack(State(app): State<App>, request: LeaseRequest<AckForm>) -> HttpResult {
    let LeaseRequest { caller, form, tokens, masked } = request;
    let has_none = masked.is_empty();
    let ack = Ack(masked);
    let Some(reserve) = form.reserve else { return end(&app, &caller, &tokens, ack).await };
    let reserve = reserve.into_reserve()?;
    check_reserve(&app, &caller, &reserve)?;
    let requests = vec![unnumbered(ack), unnumbered(reserve)];
    let batch = app.client.submit(requests, caller.grant().holder())?;
    let mut replies = caller.wait_for_all(&app, batch).await;
    if has_none {
        // Nothing was done: the call is what became of its reserve, which is undone here.
        caller.judge(&app)?;
    }
    let (acked, reserved) = (replies.next_answer(), replies.next_answer());
    // The acks are done even if the reserve failed.
    let reserved = reserved.and_then(Reserve::from_reply);
    let (jobs, custody, reserve_failed) = match reserved.and_then(|jobs| fitting(&app, jobs)) {
        Ok((jobs, custody)) => (jobs, Some(custody), None),
        Err(error) => (Vec::new(), None, Some(Failed::from(error))),
    };
    let (results, _) = results_of(&tokens, Ack::from_reply(acked?)?);
    let jobs = jobs.iter().map(LeasedOut::from).collect();
    let response = json(StatusCode::OK, &AckResults { results, jobs, reserve_failed });
    Ok(match custody {
        Some(custody) => with_custody(response, custody),
        None => response,
    })
}
