//! `dormouse dead`: the jobs of a topic that failed for good.

use clap::Subcommand;
use serde_json::json;

use crate::Global;
use crate::client::{Client, Request};
use crate::command::{ls, purge, revive};
use crate::count::Quantity;
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::pages;
use crate::target::id_path;

/// Look at dead jobs, revive or remove them
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse dead orders
  dormouse dead revive orders --max 100
  dormouse dead rm orders --all")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// List the dead jobs of this topic, as `dead ls` does
    #[arg(required = true)]
    topic: Option<String>,
    #[command(flatten)]
    range: ls::Range,
}

#[derive(Subcommand)]
enum Verb {
    /// List dead jobs, oldest first, with their last errors
    Ls {
        /// The topic
        topic: String,
        #[command(flatten)]
        range: ls::Range,
    },
    /// Make dead jobs ready, with fresh attempts, oldest first
    Revive {
        /// The topic
        topic: String,
        #[command(flatten)]
        how_many: Quantity,
    },
    /// Remove dead jobs, oldest first
    Rm {
        /// The topic
        topic: String,
        #[command(flatten)]
        how_many: Quantity,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let verb = self.verb.unwrap_or(Verb::Ls {
            // Required without a subcommand: clap sees to it.
            topic: self.topic.unwrap_or_default(),
            range: self.range,
        });
        match verb {
            Verb::Ls { topic, range } => ls::list(global, &topic, &["dead"], range).await,
            Verb::Revive { topic, how_many } => {
                revive::revive_topic(global, &topic, how_many.max).await
            }
            Verb::Rm { topic, how_many, yes } => {
                if !yes {
                    purge::confirm(&format!("Remove dead jobs of {topic}?"))?;
                }
                let max = how_many.max.unwrap_or(u64::MAX);
                let count = remove(&global.client()?, &topic, max).await?;
                match global.output {
                    Output::Json => output::print_line(&json!({"count": count}).to_string()),
                    Output::Table => output::print_line(&format!("{count} removed")),
                }
            }
        }
    }
}

/// Cancels one by one: a job that was revived in between is left alone only until then, so each
/// page is asked for anew.
async fn remove(client: &Client, topic: &str, max: u64) -> Result<u64, Failure> {
    let mut count = 0;
    let mut cursor = None;
    while count < max {
        let page =
            pages::page(client, topic, "dead", cursor.as_deref(), pages::PAGE_MAX, false).await?;
        for raw in &page.jobs {
            if count == max {
                break;
            }
            let job = pages::job(raw)?;
            let id = job.id.parse().map_err(|_| Failure::new(format!("{} is no id", job.id)))?;
            match client.call(Request::delete(id_path(id))).await {
                Ok(_) => count += 1,
                // Another client was faster.
                Err(failure) if failure.code() == Some("not_found") => {}
                Err(failure) => return Err(failure),
            }
        }
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(count)
}
