//! extend: prolong leases.

use axum::extract::State;
use dormouse_core::command::Command;
use dormouse_core::job::Token;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::Extend;
use serde::Deserialize;
use utoipa::ToSchema;

use super::ending::{EndedAnswer, Tokens, end};
use crate::access::Verb;
use crate::http::App;
use crate::http::api::{ExtendProblems, Problems, Sent};
use crate::http::caller::Caller;
use crate::http::form::{Bounded, TokenOut};
use crate::http::params::Params;
use crate::http::payload::Payload;
use crate::http::response::HttpResult;
use crate::units::SpanMs;

/// Prolong.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Extend)]
pub(crate) struct ExtendForm {
    /// One lease.
    #[schema(value_type = Option<TokenOut>)]
    token: Option<String>,
    /// Or many.
    #[schema(value_type = Option<Vec<TokenOut>>, max_items = 4096)]
    tokens: Option<Bounded<String, BATCH_MAX>>,
    /// Ends so long from now; else after the lease's own ttr.
    ttr: Option<SpanMs>,
}

/// Prolong leases.
#[utoipa::path(
    post,
    path = "/v1/extend",
    tag = "leases",
    request_body = ExtendForm,
    responses(
        (status = 200, description = "What became of it", body = EndedAnswer),
        Problems, Sent, ExtendProblems
    )
)]
pub(super) async fn extend(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    payload: Payload,
) -> HttpResult {
    params.finish()?;
    let form: ExtendForm = payload.json()?;
    let tokens = Tokens::read(form.token.as_deref(), form.tokens.as_ref())?;
    let granted = tokens.granted(&app, &caller, Verb::Extend).await?;
    let ttr_ms = form.ttr.map(|ttr| ttr.0);
    let extend = |token: &Token| Extend { token: *token, ttr_ms };
    let command = Command::Extend(granted.iter().map(extend).collect());
    end(&app, &tokens, command).await
}
