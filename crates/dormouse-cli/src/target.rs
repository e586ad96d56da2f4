//! The job a subcommand is about: by its id, or by its topic and key.

use crate::client::encode;
use crate::exit::Failure;

/// The job that a subcommand is about.
#[derive(clap::Args)]
pub(crate) struct JobTarget {
    /// The job's id, or the topic of its key
    #[arg(value_name = "ID|TOPIC", required_unless_present = "topic", conflicts_with = "topic")]
    first: Option<String>,
    /// The job's key
    #[arg(value_name = "KEY", conflicts_with = "key_option")]
    key: Option<String>,
    /// The topic of the key
    #[arg(long, value_name = "TOPIC", requires = "key_option")]
    topic: Option<String>,
    /// The job's key
    #[arg(id = "key_option", long = "key", value_name = "KEY")]
    key_option: Option<String>,
}

/// A job as it was named.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum JobName<'a> {
    /// One word, most likely an id.
    Word(&'a str),
    /// A topic and a key in it.
    Key(&'a str, &'a str),
}

impl JobTarget {
    /// How it was named.
    pub(crate) fn named(&self) -> JobName<'_> {
        // One of both is there: clap sees to it.
        let first = self.topic.as_deref().or(self.first.as_deref()).unwrap_or_default();
        match self.key_option.as_deref().or(self.key.as_deref()) {
            Some(key) => JobName::Key(first, key),
            None => JobName::Word(first),
        }
    }

    /// Its path on the server.
    pub(crate) fn path(&self) -> Result<String, Failure> {
        match self.named() {
            JobName::Key(topic, key) => Ok(key_path(topic, key)),
            JobName::Word(word) => match word.parse() {
                Ok(id) => Ok(id_path(id)),
                Err(_) => Err(Failure::usage(format!(
                    "{word} is no id, which is a number; by key write TOPIC KEY: {word} KEY"
                ))),
            },
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
