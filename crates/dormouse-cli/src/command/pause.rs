//! `dormouse pause`: stop handing out a topic's jobs.

use crate::Global;
use crate::client::{Request, fields};
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::target::topic_path;
use crate::units::Span;

/// Stop handing out a topic's jobs; puts and acks go on
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse pause orders
  dormouse pause orders --for 10m")]
pub(crate) struct Args {
    /// The topic
    topic: String,
    /// For how long; until it is resumed if not given
    #[arg(long = "for", value_name = "SPAN", allow_hyphen_values = true)]
    span: Option<Span>,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let request = Request::post(format!("{}/pause", topic_path(&self.topic)))
            .json(&fields([("for", self.span.map(Into::into))]));
        let reply = global.client()?.call(request).await?;
        match global.output {
            Output::Json => output::print_json(&reply.body),
            Output::Table => output::print_line("paused"),
        }
    }
}
