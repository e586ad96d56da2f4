//! `dormouse revive`: dead jobs get another chance.

use crate::Global;
use crate::change;
use crate::client::{Request, fields};
use crate::count;
use crate::exit::Failure;
use crate::target::{JobName, JobTarget, topic_path};

/// Make dead jobs ready, with fresh attempts: one, or those of a topic, oldest first
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse revive 7
  dormouse revive orders 42
  dormouse revive orders --all
  dormouse revive orders --max 100")]
pub(crate) struct Args {
    #[command(flatten)]
    which: JobTarget,
    /// All dead jobs of the topic
    #[arg(long, conflicts_with_all = ["max", "key", "key_option"])]
    all: bool,
    /// At most this many dead jobs of the topic
    #[arg(long, value_name = "N", conflicts_with_all = ["key", "key_option"])]
    max: Option<u64>,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        match self.which.named() {
            JobName::Word(topic) if self.all || self.max.is_some() => {
                revive_topic(global, topic, self.max).await
            }
            JobName::Word(topic) if topic.parse::<u64>().is_err() => Err(Failure::usage(format!(
                "{topic} is no id; for a key write {topic} KEY, for a topic --all or --max N"
            ))),
            _ => {
                let path = self.which.path()?;
                change::send(global, Request::post(format!("{path}/revive"))).await
            }
        }
    }
}

/// Revives dead jobs of a topic, all if `max` is not given.
pub(crate) async fn revive_topic(
    global: &Global,
    topic: &str,
    max: Option<u64>,
) -> Result<(), Failure> {
    let request = Request::post(format!("{}/revive", topic_path(topic)))
        .json(&fields([("max", max.map(Into::into))]));
    count::send(global, request, "revived").await
}
