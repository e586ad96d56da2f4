//! `dormouse schedule`: rules that repeat.

mod preview;

use clap::Subcommand;

use crate::Global;
use crate::exit::Failure;

/// Check a rule that repeats before it is used
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  dormouse schedule preview '0 3 * * 1-5' --zone Europe/Berlin")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Preview(preview::Args),
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        match self.command {
            Command::Preview(args) => args.run(global).await,
        }
    }
}
