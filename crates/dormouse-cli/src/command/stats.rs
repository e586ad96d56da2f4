//! `dormouse stats`: a topic, or all together.

use serde_json::{Map, Value};

use crate::Global;
use crate::client::Request;
use crate::command::topic::tree;
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::target::topic_path;

/// Counts and totals of a topic, or over all
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse stats
  dormouse stats orders
  dormouse -o json stats | jq .ready")]
pub(crate) struct Args {
    /// The topic; all together if not given
    topic: Option<String>,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let path = self.topic.map_or_else(|| "/v1/stats".to_owned(), |topic| topic_path(&topic));
        let reply = global.client()?.call(Request::get(path)).await?;
        if global.output == Output::Json {
            return output::print_json(&reply.body);
        }
        output::print(tree(&reply.parse::<Map<String, Value>>()?).as_bytes())
    }
}
