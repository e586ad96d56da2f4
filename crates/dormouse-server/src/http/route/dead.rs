//! Dead jobs of a topic that fit a filter: all of them are revived or cancelled, page by page.

use axum::extract::State;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::State as JobState;
use dormouse_core::op::{Cancel, ChangeReply, JobView, Revive, Target};
use dormouse_core::topic::TopicName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Verb;
use crate::http::App;
use crate::http::api::{BodyProblems, Problems};
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::payload::Unread;
use crate::http::response::{HttpResult, ok};
use crate::scan::{JobFilter, Scan};
use crate::units::SpanMs;

/// Which dead jobs; the oldest first.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DeadJobs)]
pub(crate) struct DeadForm {
    /// The largest number of jobs to change; default: all.
    pub(super) max: Option<u64>,
    /// Only jobs whose error text begins with this.
    #[schema(max_length = 1024)]
    error_prefix: Option<String>,
    /// Only jobs whose key begins with this.
    #[schema(max_length = 256)]
    key_prefix: Option<String>,
    /// Only jobs that died longer ago than this.
    older_than: Option<SpanMs>,
    /// The cursor of the previous response.
    cursor: Option<String>,
}

/// The number of changed jobs, and how far the request looked.
#[derive(Serialize, ToSchema)]
#[schema(as = DeadCount)]
pub(crate) struct DeadOut {
    pub(super) count: u64,
    /// The number of dead jobs that were looked at; absent from a revive without a filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) looked: Option<u64>,
    /// Where to go on; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) cursor: Option<String>,
}

impl DeadForm {
    /// Whether it asks for a part of the dead jobs.
    pub(super) fn is_filtered(&self) -> bool {
        self.error_prefix.is_some()
            || self.key_prefix.is_some()
            || self.older_than.is_some()
            || self.cursor.is_some()
    }
}

/// What is done to the jobs.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    Revive,
    Cancel,
}

/// Changes the jobs that fit, within the bounds of a scan.
pub(super) async fn sweep(
    app: &App,
    caller: &Caller,
    topic: TopicName,
    form: DeadForm,
    fate: Fate,
) -> HttpResult {
    let DeadForm { max, error_prefix, key_prefix, older_than, cursor } = form;
    let older_than_ms = older_than.map(|span| span.0);
    let now_ms = if older_than_ms.is_some() { app.now_ms().await? } else { 0 };
    let filter = JobFilter::new(error_prefix, key_prefix, older_than_ms, now_ms)?;
    let mut scan = Scan::new(topic, JobState::Dead, cursor, filter.unwrap_or_default());
    let (mut missing, mut count) = (max.unwrap_or(u64::MAX), 0);
    while missing > 0 && scan.goes_on() {
        // They may be many, and the right to change them may be withdrawn meanwhile.
        caller.judge(app)?;
        let _turn = app.pages.acquire().await;
        let most = usize::try_from(missing).unwrap_or(usize::MAX);
        let jobs = scan.page(&app.client, most).await?;
        let changed = change(app, fate, &jobs).await?;
        count += changed;
        missing -= jobs.len() as u64;
    }
    let (looked, cursor) = scan.into_end();
    ok(&DeadOut { count, looked: Some(looked), cursor })
}

/// Returns how many were changed. Others may have been revived or removed since they were listed.
async fn change(app: &App, fate: Fate, jobs: &[JobView]) -> Result<u64, Error> {
    if jobs.is_empty() {
        return Ok(0);
    }
    let targets = jobs.iter().map(|view| Target::Id(view.job.id));
    let replies = match fate {
        Fate::Revive => app.client.call(Revive(targets.collect())).await?,
        Fate::Cancel => {
            let cancel = |target| Cancel { target, unless_leased: true };
            app.client.call(targets.map(cancel).collect::<Vec<_>>()).await?
        }
    };
    let mut count = 0;
    for reply in replies {
        match reply {
            Ok(ChangeReply { .. }) => count += 1,
            Err(error) if matches!(error.code, Code::NotFound | Code::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// Remove dead jobs of a topic, the oldest first.
///
/// A request looks at up to 10,000 jobs and 64 MiB; as long as there is a `cursor` in the response,
/// send it to go on.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/cancel",
    tag = "topics",
    operation_id = "cancel_dead",
    params(TopicPath),
    request_body = Option<DeadForm>,
    responses(
        (status = 200, description = "The number of jobs", body = DeadOut),
        Problems, BodyProblems
    )
)]
pub(super) async fn cancel_dead(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Cancel, topic.as_str())?;
    params.finish()?;
    let form: DeadForm = body.json(&app).await?;
    sweep(&app, &caller, topic, form, Fate::Cancel).await
}
