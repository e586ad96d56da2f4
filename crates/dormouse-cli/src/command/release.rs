//! `dormouse release`: give jobs back as if they had not been taken.

use crate::Global;
use crate::client::fields;
use crate::exit::Failure;
use crate::tokens::Tokens;
use crate::units::Span;

/// End leases: give the jobs back, without an attempt spent
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse release 1.4294967297
  dormouse release 1.4294967297 --delay 10s")]
pub(crate) struct Args {
    #[command(flatten)]
    tokens: Tokens,
    /// When the jobs are due again; now if not given
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    delay: Option<Span>,
    /// A new priority; lower is first
    #[arg(long, value_name = "N")]
    priority: Option<u32>,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let fields = fields([
            ("delay", self.delay.map(Into::into)),
            ("priority", self.priority.map(Into::into)),
        ]);
        self.tokens.send(global, "release", fields).await
    }
}
