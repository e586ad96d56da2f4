//! `dormouse get`: look at one job without taking it.

use serde_json::Value;

use crate::Global;
use crate::client::{Reply, Request};
use crate::exit::Failure;
use crate::job::Job;
use crate::output::{self, Output};
use crate::target::JobTarget;

/// Look at a job without taking it
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse get 7
  dormouse get orders 42
  dormouse get 7 --body > cat.jpg")]
pub(crate) struct Args {
    #[command(flatten)]
    which: JobTarget,
    /// Print only the body, byte for byte
    #[arg(long)]
    body: bool,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let reply = global.client()?.call(Request::get(self.which.path()?)).await?;
        if self.body {
            return output::print(&reply.parse::<Job>()?.bytes()?);
        }
        match global.output {
            Output::Json => output::print_json(&reply.body),
            Output::Table => output::print(pairs(&reply)?.as_bytes()),
        }
    }
}

/// The fields as the server ordered them, the body last and whole if it is text.
fn pairs(reply: &Reply) -> Result<String, Failure> {
    let job: Job = reply.parse()?;
    let fields: serde_json::Map<String, Value> = reply.parse()?;
    let mut rows = vec![
        ("topic", job.topic.clone()),
        ("id", job.id.clone()),
        ("key", job.key_shown()),
        ("state", job.state.clone()),
        ("due_at", job.due_at.clone()),
    ];
    rows.retain(|(name, value)| *name != "key" || !value.is_empty());
    let shown = ["topic", "id", "key", "key_base64", "state", "due_at"];
    for (name, value) in &fields {
        if shown.contains(&name.as_str()) || ["body", "text", "base64"].contains(&name.as_str()) {
            continue;
        }
        rows.push((name, plain(value)));
    }
    rows.push(("body", String::from_utf8(job.bytes()?).unwrap_or_else(|_| job.preview())));
    Ok(output::pairs(&rows))
}

/// A value without the quotes of JSON.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
