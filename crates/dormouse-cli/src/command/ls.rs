//! `dormouse ls`: list a topic's jobs.

use clap::ValueEnum;
use serde_json::json;
use serde_json::value::RawValue;

use crate::Global;
use crate::exit::Failure;
use crate::job::Job;
use crate::output::{self, Output};
use crate::pages::{self, PAGE_MAX, STATES};

/// List a topic's jobs, by state and due time
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse ls orders
  dormouse ls orders --state dead --limit 100
  dormouse -o json ls orders --state delayed --all | jq -r '.jobs[].id'")]
pub(crate) struct Args {
    /// The topic
    topic: String,
    #[command(flatten)]
    range: Range,
    /// Only jobs in this state; without it all, state by state
    #[arg(long, value_name = "STATE")]
    state: Option<State>,
}

/// A part of a list.
#[derive(clap::Args)]
pub(crate) struct Range {
    /// At most this many of each state
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "all")]
    limit: usize,
    /// The whole list
    #[arg(long)]
    all: bool,
    /// Go on where a list ended; needs --state
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Leave the bodies out
    #[arg(long)]
    no_bodies: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum State {
    Delayed,
    Ready,
    Leased,
    Dead,
    Done,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        match self.state {
            Some(state) => {
                list(global, &self.topic, &[STATES[state as usize]], self.range, "").await
            }
            None if self.range.cursor.is_some() => {
                Err(Failure::usage("a cursor belongs to a list of one state: say --state too"))
            }
            None => list(global, &self.topic, &STATES, self.range, "").await,
        }
    }
}

/// Prints the jobs of a topic in the given states; `filter` are further parameters.
pub(crate) async fn list(
    global: &Global,
    topic: &str,
    states: &[&str],
    range: Range,
    filter: &str,
) -> Result<(), Failure> {
    let client = global.client()?;
    let limit = if range.all { usize::MAX } else { range.limit };
    let mut jobs: Vec<Box<RawValue>> = Vec::new();
    let mut rests = Vec::new();
    for state in states {
        let mut cursor = range.cursor.clone();
        let mut missing = limit;
        while missing > 0 {
            let count = missing.min(PAGE_MAX);
            let path = pages::path(topic, state, count, !range.no_bodies);
            let page = pages::page(&client, path + filter, cursor.as_deref()).await?;
            missing = missing.saturating_sub(page.jobs.len());
            jobs.extend(page.jobs);
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        rests.extend(cursor.map(|cursor| (*state, cursor)));
    }
    if global.output == Output::Json {
        return print_json(&jobs, states, &rests);
    }
    let parsed = jobs.iter().map(|raw| pages::job(raw)).collect::<Result<Vec<_>, _>>()?;
    output::print(table(&parsed).as_bytes())?;
    for (state, cursor) in rests {
        output::say(&format!("there are more {state} jobs: --state {state} --cursor {cursor}"));
    }
    Ok(())
}

/// The pages as the server sent them; a cursor only if there is one state.
fn print_json(
    jobs: &[Box<RawValue>],
    states: &[&str],
    rests: &[(&str, String)],
) -> Result<(), Failure> {
    // Not through a JSON value, which would change how numbers are written.
    let mut text = String::from("{\"jobs\":[");
    for (index, job) in jobs.iter().enumerate() {
        text.push_str(if index == 0 { "" } else { "," });
        text.push_str(job.get());
    }
    text.push(']');
    if let ([_], [(_, cursor)]) = (states, rests) {
        text.push_str(&format!(",\"cursor\":{}", json!(cursor)));
    }
    text.push('}');
    output::print_line(&text)
}

fn table(jobs: &[Job]) -> String {
    let has_error = jobs.iter().any(|job| job.error.is_some());
    let row = |job: &Job| {
        let mut row = vec![
            job.id.clone(),
            job.state.clone(),
            job.due_at.clone(),
            job.key_shown(),
            job.priority.to_string(),
            job.attempts.to_string(),
        ];
        row.extend(
            has_error.then(|| output::shorten(job.error.as_deref().unwrap_or_default(), 40)),
        );
        row.push(job.preview());
        row
    };
    let mut header = vec!["id", "state", "due_at", "key", "priority", "attempts"];
    header.extend(has_error.then_some("error"));
    header.push("body");
    output::table(&header, &jobs.iter().map(row).collect::<Vec<_>>())
}
