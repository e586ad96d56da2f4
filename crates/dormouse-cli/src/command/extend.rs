//! `dormouse extend`: prolong leases.

use crate::Global;
use crate::client::fields;
use crate::exit::Failure;
use crate::tokens::Tokens;
use crate::units::Span;

/// Prolong leases, from now on for their ttr
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse extend 1.4294967297
  dormouse extend 1.4294967297 --ttr 5m")]
pub(crate) struct Args {
    #[command(flatten)]
    tokens: Tokens,
    /// How long from now; the job's ttr if not given
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    ttr: Option<Span>,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let fields = fields([("ttr", self.ttr.map(Into::into))]);
        self.tokens.send(global, "extend", fields).await
    }
}
