//! `dormouse ack`: the work is done.

use serde_json::Map;

use crate::Global;
use crate::exit::Failure;
use crate::tokens::Tokens;

/// End leases: the work is done, the jobs are gone
///
/// Acking twice is harmless: a job that is not there any more answers `gone`. A lease that
/// somebody else has by now is lost, exit code 4.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse ack 1.4294967297
  dormouse -o json reserve orders --max 10 | jq -r '.jobs[].token' | dormouse ack -")]
pub(crate) struct Args {
    #[command(flatten)]
    tokens: Tokens,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        self.tokens.send(global, "ack", Map::new()).await
    }
}
