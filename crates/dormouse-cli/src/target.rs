//! The job a subcommand is about: by its id, or by its topic and key.

use crate::client::encode;

/// The job that a subcommand is about.
#[derive(clap::Args)]
pub(crate) struct JobTarget {
    /// The job's id
    #[arg(value_name = "ID", required_unless_present = "key", conflicts_with = "key")]
    id: Option<u64>,
    /// The topic of the key
    #[arg(long, value_name = "TOPIC", requires = "key")]
    topic: Option<String>,
    /// The job's key, instead of its id
    #[arg(long, value_name = "KEY", requires = "topic")]
    key: Option<String>,
}

impl JobTarget {
    /// Its path on the server.
    pub(crate) fn path(&self) -> String {
        match (&self.topic, &self.key) {
            (Some(topic), Some(key)) => key_path(topic, key),
            _ => id_path(self.id.unwrap_or_default()),
        }
    }
}

pub(crate) fn id_path(id: u64) -> String {
    format!("/v1/jobs/{id}")
}

pub(crate) fn key_path(topic: &str, key: &str) -> String {
    format!("/v1/topics/{}/keys/{}", encode(topic), encode(key))
}

/// A topic's path on the server.
pub(crate) fn topic_path(topic: &str) -> String {
    format!("/v1/topics/{}", encode(topic))
}
