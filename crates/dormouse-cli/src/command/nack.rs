//! `dormouse nack`: the work failed, try again later.

use crate::Global;
use crate::client::fields;
use crate::exit::Failure;
use crate::tokens::Tokens;
use crate::units::Span;

/// End leases: the work failed, the jobs are retried after their backoff
///
/// A job whose last attempt this was is dead, and the answer is `dead`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse nack 1.4294967297 --error 'gateway timeout'
  dormouse nack 1.4294967297 --delay 5m")]
pub(crate) struct Args {
    #[command(flatten)]
    tokens: Tokens,
    /// When to try again, in place of the backoff
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    delay: Option<Span>,
    /// A new priority; lower is first
    #[arg(long, value_name = "N")]
    priority: Option<u32>,
    /// The reason; kept with the job
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let fields = fields([
            ("delay", self.delay.map(Into::into)),
            ("priority", self.priority.map(Into::into)),
            ("error", self.error.map(Into::into)),
        ]);
        self.tokens.send(global, "nack", fields).await
    }
}
