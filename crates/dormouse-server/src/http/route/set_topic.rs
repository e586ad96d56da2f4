//! set_topic: all settings of a topic at once.

use axum::extract::State;
use dormouse_core::op::SetTopic;
use dormouse_core::topic::Settings;
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Verb;
use crate::http::App;
use crate::http::api::{BodyProblems, Problems};
use crate::http::caller::Caller;
use crate::http::form::{SettingsForm, SettingsOut};
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::payload::Unread;
use crate::http::response::{HttpResult, ok};

/// A topic's new settings.
#[derive(Serialize, ToSchema)]
#[schema(as = TopicSettings)]
pub(crate) struct SetTopicOut<'a> {
    topic: &'a str,
    settings: SettingsOut,
}

/// Set all settings of a topic; an absent one is reset to its default.
#[utoipa::path(
    put,
    path = "/v1/topics/{topic}",
    tag = "topics",
    params(TopicPath),
    request_body = Option<SettingsForm>,
    responses(
        (status = 200, description = "The new settings", body = SetTopicOut<'static>),
        Problems, BodyProblems
    )
)]
pub(super) async fn set_topic(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::SetTopic, topic.as_str())?;
    params.finish()?;
    let settings = Settings::try_from(body.json::<SettingsForm>(&app).await?)?;
    // Its letters go there.
    if let Some(dead_topic) = &settings.dead_topic {
        caller.check(Verb::SetTopic, dead_topic.as_str())?;
    }
    let out = SettingsOut::from(&settings);
    app.client.call(SetTopic { topic: topic.clone(), settings }).await?;
    ok(&SetTopicOut { topic: topic.as_str(), settings: out })
}
