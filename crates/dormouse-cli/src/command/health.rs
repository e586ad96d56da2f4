//! `dormouse health`: whether the server is ready, for container checks.

use crate::Global;
use crate::client::Request;
use crate::exit::{Exit, Failure};
use crate::output::{self, Output};

/// Ask whether the server is ready; exit 0 if it is
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse health
  HEALTHCHECK CMD [\"dormouse\", \"health\"]")]
pub(crate) struct Args {}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let reply = global.client()?.exchange(Request::get("/readyz")).await?;
        let is_ready = reply.status == 200;
        if global.output == Output::Json {
            output::print_line(&format!("{{\"ready\":{is_ready}}}"))?;
        } else if is_ready {
            output::print_line("ready")?;
        }
        if is_ready {
            return Ok(());
        }
        let text = format!("not ready: {} answered {}", global.url, reply.status);
        Err(Failure::with(Exit::Busy, text))
    }
}
