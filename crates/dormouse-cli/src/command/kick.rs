//! `dormouse kick`: make delayed jobs of a topic ready, or leased ones.

use crate::Global;
use crate::client::{Request, fields};
use crate::count::{self, Quantity};
use crate::exit::Failure;
use crate::target::topic_path;

/// Make delayed jobs of a topic ready now, earliest first; with --leased, leased ones
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse kick orders --max 10
  dormouse kick orders --all
  dormouse kick orders --leased --all")]
pub(crate) struct Args {
    /// The topic
    topic: String,
    #[command(flatten)]
    how_many: Quantity,
    /// Give leased jobs back, whoever has them: no attempt is spent, and their tokens are no longer
    /// good
    #[arg(long)]
    leased: bool,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let (verb, done) = if self.leased { ("release", "released") } else { ("kick", "kicked") };
        let request = Request::post(format!("{}/{verb}", topic_path(&self.topic)))
            .json(&fields([("max", self.how_many.max.map(Into::into))]));
        count::send(global, request, done).await
    }
}
