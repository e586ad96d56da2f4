//! `dormouse backup`: a consistent copy of the data directory, made by the server.

use serde::Deserialize;

use crate::Global;
use crate::client::{Request, fields};
use crate::exit::Failure;
use crate::output::{self, Output};

/// Make the server back up its data, and print where
///
/// A checkpoint and hard links: consistent, and cheap however much there is. Copy the directory
/// elsewhere afterwards; `dormouse verify` checks it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse backup
  dormouse backup monday
  rsync -a \"$(dormouse backup)\" elsewhere:/backups/")]
pub(crate) struct Args {
    /// The backup's name; the server finds one if not given
    name: Option<String>,
}

#[derive(Deserialize)]
struct Backup {
    path: String,
    files: u64,
    bytes: u64,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let request = Request::post("/v1/backups")
            .json(&fields([("name", self.name.map(Into::into))]))
            .waiting(std::time::Duration::from_secs(300));
        let reply = global.client()?.call(request).await?;
        if global.output == Output::Json {
            return output::print_json(&reply.body);
        }
        let backup: Backup = reply.parse()?;
        output::say(&format!("{} files, {} bytes", backup.files, backup.bytes));
        output::print_line(&backup.path)
    }
}
