//! push: where the jobs of a topic are pushed to.

use std::collections::HashMap;

use axum::extract::State;
use dormouse_core::error::{Code, Error};
use dormouse_core::op::Put;
use dormouse_core::topic::TopicName;
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, BodyProblems, Problems, PutProblems, StateProblems};
use crate::http::caller::Caller;
use crate::http::form::{NoFields, PushCode, PushForm, PushOut, PutPushOut};
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::payload::Unread;
use crate::http::response::{HttpResult, json, ok};
use crate::push::{PushHandle, PushSettings, PushStore, URL_HEADER};
use crate::units::{At, SpanMs};

/// How long an old secret signs, unless given.
const KEEP_MS_DEFAULT: i64 = 24 * 3_600 * 1_000;

/// Where the jobs of a topic are pushed to, and how that goes.
#[utoipa::path(
    get,
    path = "/v1/topics/{topic}/push",
    tag = "push",
    params(TopicPath),
    responses(
        (status = 200, description = "The push", body = PushOut<'static>),
        Problems, AbsenceProblems
    )
)]
pub(super) async fn get_push(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
) -> HttpResult {
    caller.check(Verb::Push, topic.as_str())?;
    params.finish()?;
    let handle = app.push()?;
    let record = store(&handle)?.known(&topic).await?;
    ok(&PushOut::new(topic.as_str(), &record, handle.status(&topic)))
}

/// Push the jobs of a topic to a URL; an absent field is reset to its default. The secret of a new
/// push is shown once.
#[utoipa::path(
    put,
    path = "/v1/topics/{topic}/push",
    tag = "push",
    params(TopicPath),
    request_body = PushForm,
    responses(
        (status = 201, description = "Created", body = PutPushOut<'static>),
        (status = 200, description = "Replaced or unchanged", body = PutPushOut<'static>),
        Problems, BodyProblems, PutProblems, StateProblems
    )
)]
pub(super) async fn put_push(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Push, topic.as_str())?;
    params.finish()?;
    let handle = app.push()?;
    let form: PushForm = body.json(&app).await?;
    let (fields, kept) = form.into_fields();
    let put = store(&handle)?.put(&topic, &fields, &kept).await?;
    handle.resume(&topic);
    let code = PushCode::from(put.outcome);
    let push = PushOut::new(topic.as_str(), &put.record, handle.status(&topic));
    let status = if code == PushCode::Created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json(status, &PutPushOut { code, secret: put.secret, push }))
}

/// The result of a removal.
#[derive(Serialize, ToSchema)]
#[schema(as = RemovedPush)]
pub(crate) struct RemovedPushOut<'a> {
    topic: &'a str,
}

/// Push the jobs of a topic no more. They stay.
#[utoipa::path(
    delete,
    path = "/v1/topics/{topic}/push",
    tag = "push",
    params(TopicPath),
    responses(
        (status = 200, description = "It is removed", body = RemovedPushOut<'static>),
        Problems, AbsenceProblems, StateProblems
    )
)]
pub(super) async fn remove_push(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
) -> HttpResult {
    caller.check(Verb::Push, topic.as_str())?;
    params.finish()?;
    store(&app.push()?)?.remove(&topic).await?;
    ok(&RemovedPushOut { topic: topic.as_str() })
}

/// A new secret.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = RotatePush)]
pub(crate) struct RotateForm {
    /// How long the present secret signs, too; a day unless given, at most 30.
    keep: Option<SpanMs>,
}

/// The new secret of a push.
#[derive(Serialize, ToSchema)]
#[schema(as = RotatedPush)]
pub(crate) struct RotatedOut<'a> {
    topic: &'a str,
    /// It is not shown again.
    secret: String,
    /// Until when the old one signs, too.
    retiring_until: At,
}

/// Sign with a new secret, which is shown once; the old one signs for a while, too.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/push/rotate",
    tag = "push",
    params(TopicPath),
    request_body = Option<RotateForm>,
    responses(
        (status = 200, description = "The new secret", body = RotatedOut<'static>),
        Problems, AbsenceProblems, BodyProblems, StateProblems
    )
)]
pub(super) async fn rotate_push(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Push, topic.as_str())?;
    params.finish()?;
    let handle = app.push()?;
    let form: RotateForm = body.json(&app).await?;
    let keep_ms = form.keep.map_or(KEEP_MS_DEFAULT, |span| span.0);
    let keep_ms = u64::try_from(keep_ms).unwrap_or(u64::MAX);
    let rotated = store(&handle)?.rotate(&topic, keep_ms).await?;
    let retiring_until = At(rotated.retiring_until_ms);
    ok(&RotatedOut { topic: topic.as_str(), secret: rotated.secret, retiring_until })
}

/// What a test of a push found.
#[derive(Serialize, ToSchema)]
#[schema(as = PushTest)]
pub(crate) struct PushTestOut {
    /// As in the metrics: `2xx`, `3xx`, `4xx`, `429`, `5xx`, `timeout`, `connect`, `dns`, `tls`,
    /// `blocked`.
    outcome: &'static str,
    /// What was wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// The address that was connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    address: Option<String>,
    ms: u64,
}

/// Send a request that is none of a job, and say what came of it.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/push/test",
    tag = "push",
    params(TopicPath),
    request_body = Option<NoFields>,
    responses(
        (status = 200, description = "What came of it", body = PushTestOut),
        Problems, AbsenceProblems, BodyProblems
    )
)]
pub(super) async fn test_push(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Push, topic.as_str())?;
    params.finish()?;
    let handle = app.push()?;
    let NoFields {} = body.json(&app).await?;
    let settings = store(&handle)?.known(&topic).await?.settings(0)?;
    let test = handle.test(&topic, &settings).await?;
    ok(&PushTestOut {
        outcome: test.outcome,
        error: test.error,
        address: test.addr.map(|addr| addr.to_string()),
        ms: test.ms,
    })
}

/// Go on with a push that is disabled.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/push/resume",
    tag = "push",
    params(TopicPath),
    request_body = Option<NoFields>,
    responses(
        (status = 200, description = "The push", body = PushOut<'static>),
        Problems, AbsenceProblems, BodyProblems, StateProblems
    )
)]
pub(super) async fn resume_push(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Push, topic.as_str())?;
    params.finish()?;
    let handle = app.push()?;
    let NoFields {} = body.json(&app).await?;
    let record = store(&handle)?.resume(&topic).await?;
    // What this server saw and could not store is over, too.
    handle.resume(&topic);
    ok(&PushOut::new(topic.as_str(), &record, handle.status(&topic)))
}

fn store(handle: &PushHandle) -> Result<&PushStore, Error> {
    handle.store().ok_or_else(|| {
        let text = "the program that runs this server says itself what is pushed";
        Error::new(Code::Forbidden, text)
    })
}

/// Checks the URLs that jobs bring; per put. Without one, nothing is looked up.
pub(super) async fn check_urls(app: &App, puts: &[Put]) -> Result<Vec<Result<(), Error>>, Error> {
    let mut known: HashMap<&TopicName, Option<PushSettings>> = HashMap::new();
    let mut judged = Vec::with_capacity(puts.len());
    for put in puts {
        let Some(url) = url_of(put) else {
            judged.push(Ok(()));
            continue;
        };
        let handle = app.push()?;
        if !known.contains_key(&put.topic) {
            let record = store(&handle)?.get(&put.topic).await?;
            known.insert(&put.topic, record.map(|record| record.settings(0)).transpose()?);
        }
        judged.push(match known.get(&put.topic).and_then(Option::as_ref) {
            Some(settings) => handle.check_url(settings, url),
            None => {
                let topic = &put.topic;
                let text = format!("url: topic {topic} has no push; set it, or leave url out");
                Err(Error::invalid(text))
            }
        });
    }
    Ok(judged)
}

/// The URL that a job brings.
fn url_of(put: &Put) -> Option<&str> {
    let headers = put.headers.as_deref()?;
    let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(URL_HEADER));
    found.map(|(_, url)| url.as_str())
}
