//! release: give jobs back without spending an attempt.

use axum::extract::State;
use dormouse_core::job::Token;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::Release;
use serde::Deserialize;
use utoipa::ToSchema;

use super::lease::{EndedAnswer, LeaseRequest, end, lease_form};
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{BodyProblems, EndProblems, Problems};
use crate::http::form::{Bounded, TokenOut};
use crate::http::response::HttpResult;
use crate::units::SpanMs;

/// Leases to give back.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Release)]
pub(crate) struct ReleaseForm {
    /// The token of one lease.
    #[schema(value_type = Option<TokenOut>)]
    token: Option<String>,
    /// The tokens of several leases.
    #[schema(value_type = Option<Vec<TokenOut>>, max_items = 4096)]
    tokens: Option<Bounded<String, BATCH_MAX>>,
    /// Time until the job is due again; default: none.
    delay: Option<SpanMs>,
    /// A new priority.
    #[schema(minimum = 0, maximum = 4294967295u32)]
    priority: Option<u32>,
}

lease_form!(ReleaseForm, Verb::Release);

/// End leases: give the jobs back without spending an attempt.
#[utoipa::path(
    post,
    path = "/v1/release",
    tag = "leases",
    request_body = ReleaseForm,
    responses(
        (status = 200, description = "The result of each token", body = EndedAnswer),
        Problems, BodyProblems, EndProblems
    )
)]
pub(super) async fn release(
    State(app): State<App>,
    request: LeaseRequest<ReleaseForm>,
) -> HttpResult {
    let LeaseRequest { caller, form, tokens, masked } = request;
    let release = |token: Token| Release {
        token,
        delay_ms: form.delay.map(|delay| delay.0),
        priority: form.priority,
    };
    end(&app, &caller, &tokens, masked.into_iter().map(release).collect::<Vec<_>>()).await
}
