//! Pages of a topic's jobs by state.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::{Client, Request, encode};
use crate::exit::Failure;
use crate::job::Job;
use crate::target::topic_path;

/// The states in the order of a job's life.
pub(crate) const STATES: [&str; 4] = ["delayed", "ready", "leased", "dead"];
/// Jobs in a page.
pub(crate) const PAGE_MAX: usize = 1_000;

/// A page of jobs, as the server wrote them.
#[derive(Deserialize)]
pub(crate) struct Page {
    pub(crate) jobs: Vec<Box<RawValue>>,
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// Asks for a page of a topic's jobs in one state.
pub(crate) async fn page(
    client: &Client,
    topic: &str,
    state: &str,
    cursor: Option<&str>,
    limit: usize,
    with_bodies: bool,
) -> Result<Page, Failure> {
    let mut path = format!("{}/jobs?state={state}&limit={limit}", topic_path(topic));
    if !with_bodies {
        path.push_str("&bodies=false");
    }
    if let Some(cursor) = cursor {
        path.push_str(&format!("&cursor={}", encode(cursor)));
    }
    client.call(Request::get(path)).await?.parse()
}

/// A job of a page.
pub(crate) fn job(raw: &RawValue) -> Result<Job, Failure> {
    serde_json::from_str(raw.get())
        .map_err(|error| Failure::new(format!("a job of the list makes no sense here: {error}")))
}
