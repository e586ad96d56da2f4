//! `dormouse schedule ls`: the schedules of a topic, or of all.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Global;
use crate::client::{Request, encode};
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::pages::PAGE_MAX;
use crate::target::topic_path;

/// List the schedules of a topic, those first that tick first; without a topic, those of all
#[derive(clap::Args)]
pub(super) struct Args {
    /// The topic; all topics if not given
    topic: Option<String>,
    /// Only topics whose names begin with this
    #[arg(long, value_name = "PREFIX", conflicts_with = "topic")]
    prefix: Option<String>,
    /// Only those in this state: waiting, paused, busy or broken
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// At most this many; all if not given
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct Page {
    schedules: Vec<Box<RawValue>>,
    #[serde(default)]
    cursor: Option<String>,
}

const HEADER: [&str; 9] =
    ["topic", "name", "state", "next", "given", "missed", "overlapped", "skipped", "rule"];

#[derive(Deserialize)]
struct Row {
    topic: String,
    name: String,
    state: String,
    next: Vec<String>,
    words: String,
    counts: Counts,
}

#[derive(Deserialize)]
struct Counts {
    given: u64,
    missed: u64,
    overlapped: u64,
    skipped: u64,
}

impl Args {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let client = global.client()?;
        let mut missing = self.limit.unwrap_or(usize::MAX);
        let mut schedules: Vec<Box<RawValue>> = Vec::new();
        let mut cursor: Option<String> = None;
        // A page may be empty and not be the last.
        while missing > 0 {
            let limit = missing.min(PAGE_MAX);
            let mut path = match &self.topic {
                Some(topic) => format!("{}/schedules?limit={limit}", topic_path(topic)),
                None => format!("/v1/schedules?limit={limit}"),
            };
            let fields = [("state", &self.state), ("prefix", &self.prefix), ("cursor", &cursor)];
            for (name, value) in fields {
                if let Some(value) = value {
                    path.push_str(&format!("&{name}={}", encode(value)));
                }
            }
            let page: Page = client.call(Request::get(path)).await?.parse()?;
            missing = missing.saturating_sub(page.schedules.len());
            schedules.extend(page.schedules);
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        if global.output == Output::Json {
            let schedules: Vec<&str> = schedules.iter().map(|raw| raw.get()).collect();
            return output::print_line(&format!("{{\"schedules\":[{}]}}", schedules.join(",")));
        }
        let rows = schedules.iter().map(|raw| row(raw)).collect::<Result<Vec<_>, _>>()?;
        // The topic is the same in all rows if it was given.
        let first = usize::from(self.topic.is_some());
        let rows: Vec<Vec<String>> = rows.into_iter().map(|row| row[first..].to_vec()).collect();
        output::print(output::table(&HEADER[first..], &rows).as_bytes())?;
        if cursor.is_some() {
            output::say("there are more schedules: give a larger --limit");
        }
        Ok(())
    }
}

fn row(raw: &RawValue) -> Result<Vec<String>, Failure> {
    let Row { topic, name, state, next, words, counts } = serde_json::from_str(raw.get())
        .map_err(|error| Failure::new(format!("a schedule of the list makes no sense: {error}")))?;
    let next = next.into_iter().next().unwrap_or_default();
    let Counts { given, missed, overlapped, skipped } = counts;
    let [given, missed, overlapped, skipped] =
        [given, missed, overlapped, skipped].map(|number| number.to_string());
    Ok(vec![topic, name, state, next, given, missed, overlapped, skipped, words])
}
