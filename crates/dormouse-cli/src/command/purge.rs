//! `dormouse purge`: remove jobs of a topic that are not leased.

use std::io::{self, IsTerminal as _, Write as _};

use crate::Global;
use crate::client::Request;
use crate::count;
use crate::exit::Failure;
use crate::target::topic_path;

/// Remove all jobs of a topic that are not leased, dead ones too; or those of one state
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse purge orders
  dormouse purge orders --yes
  dormouse purge orders --state dead --at-most 120")]
pub(crate) struct Args {
    /// The topic
    topic: String,
    /// Only jobs of this state
    #[arg(long, value_parser = ["delayed", "ready", "dead", "done"])]
    state: Option<String>,
    /// Remove nothing if there are more
    #[arg(long, value_name = "N")]
    at_most: Option<u64>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        if !self.yes {
            confirm(&match &self.state {
                Some(state) => format!("Remove all {state} jobs of {}?", self.topic),
                None => format!("Remove all jobs of {} that are not leased?", self.topic),
            })?;
        }
        let given = [
            self.state.map(|state| format!("state={state}")),
            self.at_most.map(|at_most| format!("at_most={at_most}")),
        ];
        let query = given.into_iter().flatten().collect::<Vec<_>>().join("&");
        let mut path = topic_path(&self.topic);
        if !query.is_empty() {
            path = format!("{path}?{query}");
        }
        count::send(global, Request::delete(path), "removed").await
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
