//! `dormouse cancel`: remove a job, whatever its state.

use crate::Global;
use crate::change;
use crate::client::Request;
use crate::exit::Failure;
use crate::target::JobTarget;

/// Remove a job; a lease on it is revoked
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse cancel 7
  dormouse cancel orders 42 --unless-leased")]
pub(crate) struct Args {
    #[command(flatten)]
    which: JobTarget,
    /// Leave it if it is leased (exit code 4)
    #[arg(long)]
    unless_leased: bool,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let query = if self.unless_leased { "?unless_leased=true" } else { "" };
        change::send(global, Request::delete(format!("{}{query}", self.which.path()?))).await
    }
}
