//! What stands in a path: topics, ids, keys and names.

use axum::extract::{FromRequestParts, RawPathParams};
use bytes::Bytes;
use dormouse_core::job::JobId;
use dormouse_core::op::Target;
use dormouse_core::topic::TopicName;
use hyper::http::request::Parts;

use super::problem::Problem;

/// `{topic}`.
pub(crate) struct InTopic(pub(crate) TopicName);

/// `{name}`: of a lock.
pub(crate) struct InName(pub(crate) String);

/// `{id}`, or `{topic}` and `{key}`.
pub(crate) struct InJob(pub(crate) Target);

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
