//! `dormouse stats`: all topics together.

use serde_json::{Map, Value};

use crate::Global;
use crate::client::Request;
use crate::command::topic::tree;
use crate::exit::Failure;
use crate::output::{self, Output};

/// Counts and totals over all topics
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse stats
  dormouse -o json stats | jq .ready")]
pub(crate) struct Args {}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let reply = global.client()?.call(Request::get("/v1/stats")).await?;
        if global.output == Output::Json {
            return output::print_json(&reply.body);
        }
        output::print(tree(&reply.parse::<Map<String, Value>>()?).as_bytes())
    }
}
