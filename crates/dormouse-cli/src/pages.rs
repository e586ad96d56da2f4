//! Pages of a topic's jobs by state.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::{Client, Request, encode};
use crate::exit::Failure;
use crate::job::Job;
use crate::target::topic_path;

/// The states in the order of a job's life.
pub(crate) const STATES: [&str; 5] = ["delayed", "ready", "leased", "dead", "done"];
/// Jobs in a page.
pub(crate) const PAGE_MAX: usize = 1_000;

/// A page of jobs, as the server wrote them.
#[derive(Deserialize)]
pub(crate) struct Page {
    pub(crate) jobs: Vec<Box<RawValue>>,
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// The path of pages of a topic's jobs in one state.
pub(crate) fn path(topic: &str, state: &str, limit: usize, with_bodies: bool) -> String {
    let bodies = if with_bodies { "" } else { "&bodies=false" };
    format!("{}/jobs?state={state}&limit={limit}{bodies}", topic_path(topic))
}

/// Asks for a page.
pub(crate) async fn page(
    client: &Client,
    mut path: String,
    cursor: Option<&str>,
) -> Result<Page, Failure> {
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
