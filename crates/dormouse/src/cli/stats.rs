//! `dormouse stats`: all topics together.

use serde_json::{Map, Value};

use super::Global;
use super::client::Request;
use super::exit::Failure;
use super::output::{self, Output};
use super::topic::tree;

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
