//! Topics, ids, keys and names in paths.

use axum::extract::{FromRequestParts, RawPathParams};
use bytes::Bytes;
use dormouse_core::job::JobId;
use dormouse_core::op::Target;
use dormouse_core::schedule::ScheduleName;
use dormouse_core::topic::TopicName;
use hyper::http::request::Parts;
use utoipa::IntoParams;

use super::problem::Problem;

/// `{topic}`.
pub(crate) struct InTopic(pub(crate) TopicName);

/// `{name}`: of a lock.
pub(crate) struct InName(pub(crate) String);

/// `{topic}` and `{name}`: of a schedule.
pub(crate) struct InSchedule(pub(crate) TopicName, pub(crate) ScheduleName);

/// `{id}`, or `{topic}` and `{key}`.
pub(crate) struct InJob(pub(crate) Target);

/// `{id}` alone.
pub(crate) struct InId(pub(crate) JobId);

async fn params<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<RawPathParams, Problem> {
    RawPathParams::from_request_parts(parts, state).await.map_err(|_| {
        Problem::malformed("the path is not percent-encoded UTF-8; encode each part of it")
    })
}

fn find<'p>(params: &'p RawPathParams, name: &str) -> Option<&'p str> {
    params.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

impl<S: Send + Sync> FromRequestParts<S> for InTopic {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<InTopic, Problem> {
        let params = params(parts, state).await?;
        Ok(InTopic(TopicName::new(find(&params, "topic").unwrap_or_default())?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<InName, Problem> {
        let params = params(parts, state).await?;
        Ok(InName(find(&params, "name").unwrap_or_default().to_owned()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InSchedule {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<InSchedule, Problem> {
        let params = params(parts, state).await?;
        let part = |name| find(&params, name).unwrap_or_default();
        Ok(InSchedule(TopicName::new(part("topic"))?, ScheduleName::new(part("name"))?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InJob {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<InJob, Problem> {
        let params = params(parts, state).await?;
        if let Some(id) = find(&params, "id") {
            return Ok(InJob(Target::Id(id.parse::<JobId>()?)));
        }
        let topic = TopicName::new(find(&params, "topic").unwrap_or_default())?;
        let key = Bytes::copy_from_slice(find(&params, "key").unwrap_or_default().as_bytes());
        Ok(InJob(Target::Key { topic, key }))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<InId, Problem> {
        let params = params(parts, state).await?;
        Ok(InId(find(&params, "id").unwrap_or_default().parse()?))
    }
}

/// `{topic}`, described.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path")]
pub(crate) struct TopicPath {
    /// The topic, percent-encoded.
    #[param(
        min_length = 1,
        max_length = 200,
        pattern = "^[A-Za-z0-9+/;.$_():][A-Za-z0-9+/;.$_():-]*$",
        example = "orders"
    )]
    topic: String,
}

/// `{id}`, described.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path")]
pub(crate) struct IdPath {
    /// The id that put answered.
    #[param(pattern = "^[0-9]{1,20}$", example = "1")]
    id: String,
}

/// `{topic}` and `{key}`, described.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path")]
pub(crate) struct KeyPath {
    /// The topic, percent-encoded.
    #[param(
        min_length = 1,
        max_length = 200,
        pattern = "^[A-Za-z0-9+/;.$_():][A-Za-z0-9+/;.$_():-]*$",
        example = "orders"
    )]
    topic: String,
    /// The key, percent-encoded; at most 256 bytes.
    #[param(min_length = 1, max_length = 256, example = "42")]
    key: String,
}

/// `{topic}` and `{name}`, described.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path")]
pub(crate) struct SchedulePath {
    /// The topic, percent-encoded.
    #[param(
        min_length = 1,
        max_length = 200,
        pattern = "^[A-Za-z0-9+/;.$_():][A-Za-z0-9+/;.$_():-]*$",
        example = "orders"
    )]
    topic: String,
    /// The schedule's name, percent-encoded.
    #[param(
        min_length = 1,
        max_length = 200,
        pattern = "^[A-Za-z0-9+/;.$_():][A-Za-z0-9+/;.$_():-]*$",
        example = "nightly"
    )]
    name: String,
}

/// `{name}`, described.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path")]
pub(crate) struct NamePath {
    /// The lock's name, percent-encoded; at most 200 bytes.
    #[param(min_length = 1, max_length = 200, example = "nightly")]
    name: String,
}
