//! `dormouse revive`: dead jobs get another chance.

use crate::Global;
use crate::change;
use crate::client::{Request, fields};
use crate::count;
use crate::exit::Failure;
use crate::target::{id_path, key_path, topic_path};

/// Make dead jobs ready, with fresh attempts: one, or those of a topic, oldest first
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse revive 7
  dormouse revive --topic orders --key 42
  dormouse revive orders --all
  dormouse revive orders --max 100")]
pub(crate) struct Args {
    /// The id of a job; with --all or --max the name of a topic
    #[arg(value_name = "ID|TOPIC", required_unless_present = "key", conflicts_with = "key")]
    what: Option<String>,
    /// All dead jobs of the topic
    #[arg(long, conflicts_with_all = ["max", "key"])]
    all: bool,
    /// At most this many dead jobs of the topic
    #[arg(long, value_name = "N", conflicts_with = "key")]
    max: Option<u64>,
    /// The topic in which the key is
    #[arg(long, value_name = "TOPIC", requires = "key")]
    topic: Option<String>,
    /// The job's key, in place of its id
    #[arg(long, value_name = "KEY", requires = "topic")]
    key: Option<String>,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let what = self.what.unwrap_or_default();
        if self.all || self.max.is_some() {
            return revive_topic(global, &what, self.max).await;
        }
        let path = match (&self.topic, &self.key) {
            (Some(topic), Some(key)) => key_path(topic, key),
            _ => {
                let wrong = "is no id; for a topic say --all or --max N";
                let id = what.parse().map_err(|_| Failure::usage(format!("{what} {wrong}")))?;
                id_path(id)
            }
        };
        change::send(global, Request::post(format!("{path}/revive"))).await
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
