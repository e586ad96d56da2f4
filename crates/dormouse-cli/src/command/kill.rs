//! `dormouse kill`: make a job dead, waiting or leased.

use serde_json::json;

use crate::Global;
use crate::change;
use crate::client::{Request, fields};
use crate::exit::Failure;
use crate::target::{JobName, JobTarget};

/// Make a job dead: it stays until it is revived or cancelled
///
/// Name a waiting job by its id, or its topic and key; a leased one by its token instead.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse kill 7 --error 'customer left'
  dormouse kill 7.4294967297
  dormouse kill orders 42")]
pub(crate) struct Args {
    #[command(flatten)]
    which: JobTarget,
    /// Why; kept with the job
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// A new priority, for when it is revived; lower is first
    #[arg(long, value_name = "N")]
    priority: Option<u32>,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let mut fields = fields([
            ("error", self.error.map(Into::into)),
            ("priority", self.priority.map(Into::into)),
        ]);
        let path = match self.which.named() {
            JobName::Word(token) if token.contains('.') => {
                fields.insert("token".into(), json!(token));
                "/v1/kill".to_owned()
            }
            _ => format!("{}/kill", self.which.path()?),
        };
        change::send(global, Request::post(path).json(&fields)).await
    }
}
