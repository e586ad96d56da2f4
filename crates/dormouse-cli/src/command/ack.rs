//! `dormouse ack`: the work is done.

use serde_json::{Map, Value, json};

use crate::Global;
use crate::client::fields;
use crate::exit::Failure;
use crate::tokens::Tokens;

/// End leases: the work is done, the jobs are gone
///
/// Acking twice is harmless: a job that is not there any more answers `gone`. A lease that
/// somebody else has by now is lost, exit code 4.
///
/// With --put and --put-json, jobs that come after it are put in the same step: all of it is done,
/// or nothing.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse ack 1.4294967297
  dormouse -o json reserve orders --max 10 | jq -r '.jobs[].token' | dormouse ack -
  dormouse ack 1.4294967297 --put upload cat.jpg
  dormouse ack 1.4294967297 --put-json '{\"topic\": \"remind\", \"delay\": \"1h\"}'")]
pub(crate) struct Args {
    #[command(flatten)]
    tokens: Tokens,
    /// Put a job with this text into a topic; can be given more than once
    #[arg(long, num_args = 2, value_names = ["TOPIC", "BODY"], allow_hyphen_values = true)]
    put: Vec<String>,
    /// Put a job with options: an object with topic and the fields of the HTTP API; can be given
    /// more than once
    #[arg(long, value_name = "JSON", value_parser = parse_object)]
    put_json: Vec<Map<String, Value>>,
}

fn parse_object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("it is no JSON object: {error}"))
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let pairs = self.put.chunks_exact(2);
        let plain = pairs.map(|pair| json!({ "topic": pair[0], "text": pair[1] }));
        let puts: Vec<Value> = plain.chain(self.put_json.into_iter().map(Value::Object)).collect();
        let puts = (!puts.is_empty()).then_some(Value::Array(puts));
        self.tokens.send(global, "ack", fields([("put", puts)])).await
    }
}
