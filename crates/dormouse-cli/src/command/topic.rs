//! `dormouse topic`: one topic and its settings.

use clap::Subcommand;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Global;
use crate::client::{Client, Request, fields};
use crate::command::get::plain;
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::target::topic_path;
use crate::units::{Backoff, Rate, Span};

/// Show a topic, or change its settings
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse topic show orders
  dormouse topic set orders --ttr 5m --attempts-max 3 --backoff fixed:10s
  dormouse topic set orders --expires-after 1h --dead-topic orders/dead
  dormouse topic set orders --keep-done 24h
  dormouse topic set orders --leased-max 50 --rate 100/1m --group-leased-max 2
  dormouse topic set orders --reset")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Counts, settings and totals of a topic
    Show {
        /// The topic
        topic: String,
    },
    /// Change settings; those not given stay as they are
    Set {
        /// The topic
        topic: String,
        #[command(flatten)]
        settings: Box<Settings>,
    },
}

#[derive(clap::Args)]
struct Settings {
    /// How long a lease lasts, unless the job sets it
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    ttr: Option<Span>,
    /// After this many attempts a job is dead, unless it sets its own limit; 0 is no limit
    #[arg(long, value_name = "N")]
    attempts_max: Option<u32>,
    /// Time between attempts, unless the job sets it: fixed:10s, exponential:1s:2:10m, list:1s,5s
    #[arg(long, value_name = "BACKOFF")]
    backoff: Option<Backoff>,
    /// Delay of jobs put without a delay or a time
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    delay: Option<Span>,
    /// A job dies if nobody takes it so long after it was due, unless it sets its own span
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    expires_after: Option<Span>,
    /// The most jobs it may hold
    #[arg(long, value_name = "N")]
    jobs_max: Option<u64>,
    /// The most bytes its jobs may have
    #[arg(long, value_name = "BYTES")]
    bytes_max: Option<u64>,
    /// Dead jobs vanish after this time
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    dead_ttl: Option<Span>,
    /// The most dead jobs it keeps; the oldest go first
    #[arg(long, value_name = "N")]
    dead_max: Option<u64>,
    /// Jobs that die are put into this topic; without it they rest as dead
    #[arg(long, value_name = "TOPIC")]
    dead_topic: Option<String>,
    /// Keep acked jobs as done for this long; 0 is not at all
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    keep_done: Option<Span>,
    /// The most jobs that may be leased at once; others stay ready
    #[arg(long, value_name = "N")]
    leased_max: Option<u64>,
    /// How fast jobs are taken: 100/1m, or 100/1m:burst=5
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// The most jobs of a group that may be leased at once
    #[arg(long, value_name = "N")]
    group_leased_max: Option<u64>,
    /// How fast jobs of a group are taken
    #[arg(long, value_name = "RATE")]
    group_rate: Option<Rate>,
    /// Reset the settings that are not given to their defaults
    #[arg(long)]
    reset: bool,
}

/// A topic, as far as lists show it.
#[derive(Deserialize)]
pub(crate) struct Topic {
    pub(crate) topic: String,
    pub(crate) delayed: u64,
    pub(crate) ready: u64,
    pub(crate) leased: u64,
    pub(crate) dead: u64,
    #[serde(default)]
    pub(crate) done: u64,
    #[serde(default)]
    pub(crate) waiters: u64,
    #[serde(default)]
    pub(crate) oldest_ready_ms: Option<u64>,
    #[serde(default)]
    pub(crate) paused: bool,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let client = global.client()?;
        let reply = match self.verb {
            Verb::Show { topic } => client.call(Request::get(topic_path(&topic))).await?,
            Verb::Set { topic, settings } => {
                let fields = settings.merged(&client, &topic).await?;
                client.call(Request::put(topic_path(&topic)).json(&fields)).await?
            }
        };
        if global.output == Output::Json {
            return output::print_json(&reply.body);
        }
        let topic: Map<String, Value> =
            if reply.body.is_empty() { Map::new() } else { reply.parse()? };
        output::print(tree(&topic).as_bytes())
    }
}

impl Settings {
    fn given(&self) -> Map<String, Value> {
        fields([
            ("ttr", self.ttr.map(Into::into)),
            ("attempts_max", self.attempts_max.map(Into::into)),
            ("backoff", self.backoff.clone().map(Into::into)),
            ("delay", self.delay.map(Into::into)),
            ("expires_after", self.expires_after.map(Into::into)),
            ("jobs_max", self.jobs_max.map(Into::into)),
            ("bytes_max", self.bytes_max.map(Into::into)),
            ("dead_ttl", self.dead_ttl.map(Into::into)),
            ("dead_max", self.dead_max.map(Into::into)),
            ("dead_topic", self.dead_topic.clone().map(Into::into)),
            ("keep_done", self.keep_done.map(Into::into)),
            ("leased_max", self.leased_max.map(Into::into)),
            ("rate", self.rate.map(Into::into)),
            ("group_leased_max", self.group_leased_max.map(Into::into)),
            ("group_rate", self.group_rate.map(Into::into)),
        ])
    }

    /// The given settings over the present ones: the server replaces all at once.
    async fn merged(&self, client: &Client, topic: &str) -> Result<Map<String, Value>, Failure> {
        let given = self.given();
        if given.is_empty() && !self.reset {
            return Err(Failure::usage("there is nothing to set: give a setting, or --reset"));
        }
        let mut all = if self.reset { Map::new() } else { current(client, topic).await? };
        all.extend(given);
        Ok(all)
    }
}

/// The settings that are there, as they are written when they are set.
async fn current(client: &Client, topic: &str) -> Result<Map<String, Value>, Failure> {
    let topic: Map<String, Value> = match client.call(Request::get(topic_path(topic))).await {
        Ok(reply) => reply.parse()?,
        Err(failure) if failure.code() == Some("not_found") => return Ok(Map::new()),
        Err(failure) => return Err(failure),
    };
    let Some(Value::Object(settings)) = topic.get("settings") else { return Ok(Map::new()) };
    let name = |name: &str| name.strip_suffix("_ms").unwrap_or(name).to_owned();
    let set = settings.iter().filter(|(_, value)| !value.is_null());
    Ok(set.map(|(key, value)| (name(key), value.clone())).collect())
}

/// Fields of fields, one per line: `settings.ttr_ms`.
pub(crate) fn tree(object: &Map<String, Value>) -> String {
    let mut rows = Vec::new();
    collect(object, "", &mut rows);
    let rows: Vec<(&str, String)> =
        rows.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    output::pairs(&rows)
}

fn collect(object: &Map<String, Value>, prefix: &str, rows: &mut Vec<(String, String)>) {
    for (name, value) in object {
        match value {
            Value::Object(inner) => collect(inner, &format!("{prefix}{name}."), rows),
            value => rows.push((format!("{prefix}{name}"), plain(value))),
        }
    }
}
