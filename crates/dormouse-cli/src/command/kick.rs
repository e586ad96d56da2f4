//! `dormouse kick`: make delayed jobs of a topic ready.

use crate::Global;
use crate::client::{Request, fields};
use crate::count::{self, Quantity};
use crate::exit::Failure;
use crate::target::topic_path;

/// Make delayed jobs of a topic ready now, earliest first
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse kick orders --max 10
  dormouse kick orders --all")]
pub(crate) struct Args {
    /// The topic
    topic: String,
    #[command(flatten)]
    how_many: Quantity,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let request = Request::post(format!("{}/kick", topic_path(&self.topic)))
            .json(&fields([("max", self.how_many.max.map(Into::into))]));
        count::send(global, request, "kicked").await
    }
}
