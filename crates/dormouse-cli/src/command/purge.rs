//! `dormouse purge`: remove all jobs of a topic that are not leased.

use std::io::{self, IsTerminal as _, Write as _};

use crate::Global;
use crate::client::Request;
use crate::count;
use crate::exit::Failure;
use crate::target::topic_path;

/// Remove all jobs of a topic that are not leased, dead ones too
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse purge orders
  dormouse purge orders --yes")]
pub(crate) struct Args {
    /// The topic
    topic: String,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        if !self.yes {
            confirm(&format!("Remove all jobs of {} that are not leased?", self.topic))?;
        }
        count::send(global, Request::delete(topic_path(&self.topic)), "removed").await
    }
}

/// Asks on a terminal; without one, --yes is needed.
pub(crate) fn confirm(question: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("this cannot be undone, and there is nobody to ask: say --yes"));
    }
    let mut stderr = io::stderr();
    let _ = write!(stderr, "{question} [y/N] ");
    let _ = stderr.flush();
    let mut answer = String::new();
    io::stdin()
        .read_line(&mut answer)
        .map_err(|error| Failure::new(format!("cannot read the answer: {error}")))?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::new("nothing was removed"))
}
