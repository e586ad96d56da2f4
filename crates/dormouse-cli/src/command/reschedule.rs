//! `dormouse reschedule`: move a waiting job in time.

use crate::Global;
use crate::change;
use crate::client::{Request, fields};
use crate::exit::Failure;
use crate::target::JobTarget;
use crate::units::{At, Span};

/// Move a waiting job to another time
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse reschedule 7 --delay 30m
  dormouse reschedule orders 42 --at 2027-01-01T09:00:00+01:00")]
pub(crate) struct Args {
    #[command(flatten)]
    which: JobTarget,
    #[command(flatten)]
    when: DueTime,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct DueTime {
    /// Due after this delay
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    delay: Option<Span>,
    /// Due at this instant
    #[arg(long, value_name = "INSTANT")]
    at: Option<At>,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let fields = fields([
            ("delay", self.when.delay.map(Into::into)),
            ("at", self.when.at.map(Into::into)),
        ]);
        change::send(global, Request::patch(self.which.path()?).json(&fields)).await
    }
}
