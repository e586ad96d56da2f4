//! `dormouse run`: make a waiting job due now.

use crate::Global;
use crate::change;
use crate::client::Request;
use crate::exit::Failure;
use crate::target::JobTarget;

/// Make a waiting job due now
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse run 7
  dormouse run orders 42")]
pub(crate) struct Args {
    #[command(flatten)]
    which: JobTarget,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        change::send(global, Request::post(format!("{}/run", self.which.path()?))).await
    }
}
