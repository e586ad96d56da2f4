//! lateness: how late the jobs of a topic were handed out.

use axum::extract::State;
use dormouse_core::op::Stats;
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Verb;
use crate::http::App;
use crate::http::api::{AbsenceProblems, Problems};
use crate::http::caller::Caller;
use crate::http::form::LatenessOut;
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::response::{HttpResult, ok};

/// The lateness of a topic.
#[derive(Serialize, ToSchema)]
#[schema(as = TopicLateness)]
pub(crate) struct TopicLatenessOut<'a> {
    topic: &'a str,
    #[serde(flatten)]
    lateness: LatenessOut,
}

/// Read how late this server handed out the jobs of a topic.
#[utoipa::path(
    get,
    path = "/v1/topics/{topic}/lateness",
    tag = "topics",
    params(TopicPath),
    responses(
        (status = 200, description = "The lateness", body = TopicLatenessOut<'static>),
        Problems, AbsenceProblems
    )
)]
pub(super) async fn lateness(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
) -> HttpResult {
    caller.check(Verb::Stats, topic.as_str())?;
    params.finish()?;
    // Whether the topic exists is for the backend to say.
    app.client.call(Stats { topic: Some(topic.clone()) }).await?;
    let lateness = LatenessOut::from(&app.metrics.lateness_of(&topic));
    ok(&TopicLatenessOut { topic: topic.as_str(), lateness })
}
