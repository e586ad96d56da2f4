//! `dormouse topics`: all topics and their counts.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Global;
use crate::client::{Request, encode};
use crate::command::topic::Topic;
use crate::exit::Failure;
use crate::output::{self, Output};

/// List topics and how many jobs they have
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse topics
  dormouse topics --sort dead --limit 10
  dormouse -o json topics | jq -r '.topics[] | select(.dead > 0) | .topic'")]
pub(crate) struct Args {
    /// At most this many; all if not given
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Only those after this name
    #[arg(long, value_name = "TOPIC")]
    after: Option<String>,
    /// Only those whose names begin so
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// The order; all but `name` have the largest first, and 100 topics at most
    #[arg(long, value_name = "BY", default_value = "name", conflicts_with = "after")]
    #[arg(value_parser = ["name", "ready", "dead", "waiting", "oldest"])]
    sort: String,
}

/// Topics of a page that is sorted by a count, at most.
const SORTED_MAX: usize = 100;

#[derive(Deserialize)]
struct Page {
    topics: Vec<Box<RawValue>>,
    #[serde(default)]
    next: Option<String>,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let client = global.client()?;
        let is_sorted = self.sort != "name";
        let page_max = if is_sorted { SORTED_MAX } else { crate::pages::PAGE_MAX };
        let mut missing = self.limit.unwrap_or(usize::MAX);
        let mut topics: Vec<Box<RawValue>> = Vec::new();
        let mut after = self.after;
        while missing > 0 {
            let mut path = format!("/v1/topics?limit={}", missing.min(page_max));
            if is_sorted {
                path.push_str(&format!("&sort={}", self.sort));
            }
            if let Some(prefix) = &self.prefix {
                path.push_str(&format!("&prefix={}", encode(prefix)));
            }
            if let Some(after) = &after {
                path.push_str(&format!("&after={}", encode(after)));
            }
            let page: Page = client.call(Request::get(path)).await?.parse()?;
            missing = missing.saturating_sub(page.topics.len());
            topics.extend(page.topics);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        if global.output == Output::Json {
            return print_json(&topics, after.as_deref());
        }
        let parse = |raw: &RawValue| serde_json::from_str::<Topic>(raw.get());
        let topics = topics.iter().map(|raw| parse(raw)).collect::<Result<Vec<_>, _>>();
        let topics = topics.map_err(|error| Failure::new(format!("a topic: {error}")))?;
        output::print(table(&topics).as_bytes())?;
        if let Some(after) = after {
            output::say(&format!("there are more topics: --after {after}"));
        }
        Ok(())
    }
}

fn print_json(topics: &[Box<RawValue>], next: Option<&str>) -> Result<(), Failure> {
    let topics: Vec<&str> = topics.iter().map(|raw| raw.get()).collect();
    let next = next.map(|next| format!(",\"next\":{}", serde_json::json!(next)));
    output::print_line(&format!(
        "{{\"topics\":[{}]{}}}",
        topics.join(","),
        next.unwrap_or_default()
    ))
}

fn table(topics: &[Topic]) -> String {
    let row = |topic: &Topic| {
        vec![
            topic.topic.clone(),
            topic.delayed.to_string(),
            topic.ready.to_string(),
            topic.leased.to_string(),
            topic.dead.to_string(),
            topic.done.to_string(),
            topic.waiters.to_string(),
            topic.oldest_ready_ms.map(|ms| ms.to_string()).unwrap_or_default(),
            if topic.paused { "paused" } else { "" }.to_owned(),
        ]
    };
    let header = [
        "topic",
        "delayed",
        "ready",
        "leased",
        "dead",
        "done",
        "waiters",
        "oldest_ready_ms",
        "note",
    ];
    output::table(&header, &topics.iter().map(row).collect::<Vec<_>>())
}
