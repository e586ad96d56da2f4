//! `dormouse kill`: make a job dead, waiting or leased.

use serde_json::json;

use crate::Global;
use crate::change;
use crate::client::{Request, fields};
use crate::exit::Failure;
use crate::target::{id_path, key_path};

/// Make a job dead: it stays until it is revived or cancelled
///
/// Name a waiting job by its id or key, a leased one by its token.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse kill 7 --error 'customer left'
  dormouse kill 7.4294967297
  dormouse kill --topic orders --key 42")]
pub(crate) struct Args {
    /// The job's id, or the token of its lease
    #[arg(value_name = "ID|TOKEN", required_unless_present = "key", conflicts_with = "key")]
    job: Option<String>,
    /// The topic in which the key is
    #[arg(long, value_name = "TOPIC", requires = "key")]
    topic: Option<String>,
    /// The job's key, in place of its id
    #[arg(long, value_name = "KEY", requires = "topic")]
    key: Option<String>,
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
        let path = match (&self.job, &self.topic, &self.key) {
            (_, Some(topic), Some(key)) => format!("{}/kill", key_path(topic, key)),
            (Some(token), _, _) if token.contains('.') => {
                fields.insert("token".into(), json!(token));
                "/v1/kill".to_owned()
            }
            (job, _, _) => {
                let job = job.as_deref().unwrap_or_default();
                let id = job.parse().map_err(|_| {
                    Failure::usage(format!("{job}: an id is a number, a token has a dot"))
                })?;
                format!("{}/kill", id_path(id))
            }
        };
        change::send(global, Request::post(path).json(&fields)).await
    }
}
