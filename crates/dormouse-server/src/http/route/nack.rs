//! nack: the attempt failed.

use axum::extract::State;
use bytes::Bytes;
use dormouse_core::job::Token;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Nack, check};
use serde::Deserialize;
use utoipa::ToSchema;

use super::lease::{EndedAnswer, LeaseRequest, end, lease_form};
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{BodyProblems, EndProblems, Problems};
use crate::http::form::{Bounded, TokenOut};
use crate::http::response::HttpResult;
use crate::units::SpanMs;

/// Leases whose attempt failed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Nack)]
pub(crate) struct NackForm {
    /// The token of one lease.
    #[schema(value_type = Option<TokenOut>)]
    token: Option<String>,
    /// The tokens of several leases.
    #[schema(value_type = Option<Vec<TokenOut>>, max_items = 4096)]
    tokens: Option<Bounded<String, BATCH_MAX>>,
    /// Time until the job is due again; default: by its backoff.
    delay: Option<SpanMs>,
    /// A new priority.
    #[schema(minimum = 0, maximum = 4294967295u32)]
    priority: Option<u32>,
    /// An error text, stored with the job.
    error: Option<String>,
}

lease_form!(NackForm, Verb::Nack);

/// End leases: the attempt failed, try again later.
#[utoipa::path(
    post,
    path = "/v1/nack",
    tag = "leases",
    request_body = NackForm,
    responses(
        (status = 200, description = "The result of each token", body = EndedAnswer),
        Problems, BodyProblems, EndProblems
    )
)]
pub(super) async fn nack(State(app): State<App>, request: LeaseRequest<NackForm>) -> HttpResult {
    let LeaseRequest { caller, form, tokens, masked } = request;
    // Cut once, here: each item would weigh the whole text.
    let error = form.error.map(|text| check::error_text(Bytes::from(text)));
    let nack = |token: Token| Nack {
        token,
        delay_ms: form.delay.map(|delay| delay.0),
        priority: form.priority,
        error: error.clone(),
    };
    end(&app, &caller, &tokens, masked.into_iter().map(nack).collect::<Vec<_>>()).await
}
