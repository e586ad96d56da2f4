//! release: give back unspent.

use axum::extract::State;
use dormouse_core::job::Token;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::Release;
use serde::Deserialize;
use utoipa::ToSchema;

use super::lease::{EndedAnswer, LeaseRequest, end, lease_form};
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{EndProblems, Problems, Sent};
use crate::http::form::{Bounded, TokenOut};
use crate::http::response::HttpResult;
use crate::units::SpanMs;

/// Given back.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Release)]
pub(crate) struct ReleaseForm {
    /// One lease.
    #[schema(value_type = Option<TokenOut>)]
    token: Option<String>,
    /// Or many.
    #[schema(value_type = Option<Vec<TokenOut>>, max_items = 4096)]
    tokens: Option<Bounded<String, BATCH_MAX>>,
    /// Due again so long from now; else at once.
    delay: Option<SpanMs>,
    /// A new priority.
    #[schema(minimum = 0, maximum = 4294967295u32)]
    priority: Option<u32>,
}

lease_form!(ReleaseForm, Verb::Release);

/// End leases: give the jobs back, the attempt not spent.
#[utoipa::path(
    post,
    path = "/v1/release",
    tag = "leases",
    request_body = ReleaseForm,
    responses(
        (status = 200, description = "What became of it", body = EndedAnswer),
        Problems, Sent, EndProblems
    )
)]
pub(super) async fn release(
    State(app): State<App>,
    request: LeaseRequest<ReleaseForm>,
) -> HttpResult {
    let LeaseRequest { form, tokens, masked, .. } = request;
    let release = |token: Token| Release {
        token,
        delay_ms: form.delay.map(|delay| delay.0),
        priority: form.priority,
    };
    end(&app, &tokens, masked.into_iter().map(release).collect::<Vec<_>>()).await
}
