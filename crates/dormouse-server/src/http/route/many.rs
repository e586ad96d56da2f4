//! Shared by revive, kick and release of a topic: several commands, one after the other, so that
//! the backend can serve other requests in between.

use dormouse_core::command::Operation;
use dormouse_core::error::{Code, Error};
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Stats, TopicStats};
use dormouse_core::topic::TopicName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::App;
use crate::http::caller::Caller;
use crate::http::response::{HttpResult, ok};

/// The number of jobs to change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Max)]
pub(crate) struct MaxForm {
    /// The largest number of jobs; default: all.
    pub(super) max: Option<u64>,
}

/// The number of changed jobs.
#[derive(Serialize, ToSchema)]
#[schema(as = Count)]
pub(crate) struct CountOut {
    pub(crate) count: u64,
}

/// Sends `operation` until `max` jobs are changed, and not more than there are now: with busy
/// producers there might be no end.
pub(super) async fn do_many<O: Operation<Reply = u64>>(
    app: &App,
    caller: &Caller,
    topic: &TopicName,
    max: Option<u64>,
    present: impl Fn(&TopicStats) -> u64,
    operation: impl Fn(usize) -> O,
) -> HttpResult {
    let mut missing = match max {
        Some(max) if max <= BATCH_MAX as u64 => max,
        max => max.unwrap_or(u64::MAX).min(present(&stats_of(app, topic).await?)),
    };
    let mut count = 0;
    while missing > 0 {
        // They may be many, and the right to change them may be withdrawn meanwhile.
        caller.judge(app)?;
        let batch = missing.min(BATCH_MAX as u64);
        let done = app.client.call(operation(batch as usize)).await?;
        count += done;
        missing -= batch;
        if done < batch {
            break;
        }
    }
    ok(&CountOut { count })
}

/// The counts of a topic; all zero if there is none.
async fn stats_of(app: &App, topic: &TopicName) -> Result<TopicStats, Error> {
    match app.client.call(Stats { topic: Some(topic.clone()) }).await {
        Err(error) if error.code == Code::NotFound => Ok(TopicStats::default()),
        stats => stats,
    }
}
