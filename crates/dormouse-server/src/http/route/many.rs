//! What revive and kick of a topic share: more than one command may do, one after the other, so
//! that others get their turn in between.

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Stats, TopicStats};
use dormouse_core::topic::TopicName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::client::unexpected;
use crate::http::App;
use crate::http::response::{HttpResult, ok};

/// How many.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Max)]
pub(crate) struct MaxForm {
    /// At most so many; else all there are.
    max: Option<u64>,
}

/// How many jobs it were.
#[derive(Serialize, ToSchema)]
#[schema(as = Count)]
pub(crate) struct CountOut {
    pub(crate) count: u64,
}

/// Sends `command` until as many jobs are done as wanted. Only those that are there now count:
/// with producers at work there might be no end.
pub(super) async fn do_many(
    app: &App,
    topic: &TopicName,
    form: MaxForm,
    there: impl Fn(&TopicStats) -> u64,
    command: impl Fn(usize) -> Command,
) -> HttpResult {
    let mut missing = match form.max {
        Some(max) if max <= BATCH_MAX as u64 => max,
        max => max.unwrap_or(u64::MAX).min(there(&stats_of(app, topic).await?)),
    };
    let mut count = 0;
    while missing > 0 {
        let batch = missing.min(BATCH_MAX as u64);
        let done = count_of(&app.client.call(command(batch as usize)).await?)?;
        count += done;
        missing -= batch;
        if done < batch {
            break;
        }
    }
    ok(&CountOut { count })
}

/// The count of a reply.
pub(super) fn count_of(reply: &Reply) -> Result<u64, Error> {
    match reply {
        Reply::Count(count) => Ok(*count),
        other => Err(unexpected(other)),
    }
}

/// A topic that is not there has nothing.
async fn stats_of(app: &App, topic: &TopicName) -> Result<TopicStats, Error> {
    let stats = Stats { topic: Some(topic.clone()) };
    match app.client.call(Command::Stats(stats)).await {
        Ok(Reply::Stats(stats)) => Ok(stats),
        Ok(other) => Err(unexpected(&other)),
        Err(error) if error.code == Code::NotFound => Ok(TopicStats::default()),
        Err(error) => Err(error),
    }
}
