//! `dormouse resume`: end the pause of a topic.

use crate::Global;
use crate::client::Request;
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::target::topic_path;

/// End the pause of a topic
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse resume orders")]
pub(crate) struct Args {
    /// The topic
    topic: String,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let request = Request::post(format!("{}/resume", topic_path(&self.topic)));
        let reply = global.client()?.call(request).await?;
        match global.output {
            Output::Json => output::print_json(&reply.body),
            Output::Table => output::print_line("resumed"),
        }
    }
}
