//! preview: the next ticks of a rule that repeats. Nothing is stored, and no backend is asked.

use axum::extract::State;
use dormouse_core::limits::PREVIEW_TICKS_DEFAULT;
use dormouse_core::op::check;
use dormouse_core::tick::{self, RuleForm};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Verb;
use crate::http::App;
use crate::http::api::{BodyProblems, Problems};
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::payload::Unread;
use crate::http::response::{HttpResult, ok};
use crate::units::{At, InstantMs, SpanMs};

/// A rule; exactly one of `cron`, `every` and `gap`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PreviewSchedule)]
pub(crate) struct PreviewForm {
    /// 5 fields (minutes hours days months weekdays), 6 with seconds first, or a name like
    /// `@daily`.
    #[schema(max_length = 256, examples("0 3 * * 1-5"))]
    cron: Option<String>,
    /// An IANA name, `UTC`, or an offset like `+05:30`; only with `cron`. Default: UTC.
    #[schema(max_length = 64, examples("Europe/Berlin"))]
    zone: Option<String>,
    /// Ticks at this distance, counted from `from`; 100 ms to 100 years.
    every: Option<SpanMs>,
    /// Ticks this long after the job before has ended; 100 ms to 100 years.
    gap: Option<SpanMs>,
    /// All ticks are after it; default: now.
    from: Option<InstantMs>,
    /// The number of ticks; default: 10.
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// What a rule does.
#[derive(Serialize, ToSchema)]
#[schema(as = Preview)]
pub(crate) struct PreviewOut {
    /// The next ticks, the earliest first.
    ticks: Vec<At>,
    /// The same by the clock of the zone; absent without a zone other than UTC.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, examples("2027-01-04T03:00:00+01:00"))]
    local: Vec<String>,
    /// The rule in words.
    words: String,
    /// What happens when clocks change in the year after `from`, and which months are passed over.
    notes: Vec<String>,
}

/// Show the next ticks of a rule that repeats.
#[utoipa::path(
    post,
    path = "/v1/schedules/preview",
    tag = "schedules",
    operation_id = "preview_schedule",
    request_body = PreviewForm,
    responses(
        (status = 200, description = "The next ticks", body = PreviewOut),
        Problems, BodyProblems
    )
)]
pub(super) async fn preview(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    body: Unread,
) -> HttpResult {
    // It shows nothing of anybody: whoever may look at some job may ask.
    caller.check_somewhere(Verb::Get)?;
    params.finish()?;
    let form: PreviewForm = body.json(&app).await?;
    let rule = RuleForm {
        cron: form.cron.as_deref(),
        zone: form.zone.as_deref(),
        every_ms: form.every.map(|span| span.0),
        gap_ms: form.gap.map(|span| span.0),
    };
    let from = form.from.map(|at| check::instant("from", at.0)).transpose()?;
    let from_ms = match from {
        Some(ms) => ms,
        None => app.now_ms().await?,
    };
    let limit = form.limit.map_or(PREVIEW_TICKS_DEFAULT, |limit| limit as usize);
    let preview = tick::preview(&rule, from_ms, limit, jiff::tz::db())?;
    let ticks = preview.ticks.into_iter().map(At).collect();
    let (local, words, notes) = (preview.local, preview.words, preview.notes);
    ok(&PreviewOut { ticks, local, words, notes })
}
