//! extend: prolong leases.

use axum::extract::State;
use dormouse_core::job::Token;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::Extend;
use serde::Deserialize;
use utoipa::ToSchema;

use super::lease::{EndedAnswer, LeaseRequest, end, lease_form};
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{BodyProblems, ExtendProblems, Problems};
use crate::http::form::{Bounded, TokenOut};
use crate::http::response::HttpResult;
use crate::units::SpanMs;

/// Leases to prolong.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Extend)]
pub(crate) struct ExtendForm {
    /// The token of one lease.
    #[schema(value_type = Option<TokenOut>)]
    token: Option<String>,
    /// The tokens of several leases.
    #[schema(value_type = Option<Vec<TokenOut>>, max_items = 4096)]
    tokens: Option<Bounded<String, BATCH_MAX>>,
    /// Time until the leases end; default: each lease's own ttr.
    ttr: Option<SpanMs>,
}

lease_form!(ExtendForm, Verb::Extend);

/// Prolong leases.
#[utoipa::path(
    post,
    path = "/v1/extend",
    tag = "leases",
    request_body = ExtendForm,
    responses(
        (status = 200, description = "The result of each token", body = EndedAnswer),
        Problems, BodyProblems, ExtendProblems
    )
)]
pub(super) async fn extend(
    State(app): State<App>,
    request: LeaseRequest<ExtendForm>,
) -> HttpResult {
    let LeaseRequest { caller, form, tokens, masked } = request;
    let ttr_ms = form.ttr.map(|ttr| ttr.0);
    caller.check_ttr(&app, "ttr", ttr_ms, None)?;
    let extend = |token: Token| Extend { token, ttr_ms };
    end(&app, &caller, &tokens, masked.into_iter().map(extend).collect::<Vec<_>>()).await
}
