//! `dormouse dead`: the jobs of a topic that failed for good.

use clap::Subcommand;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Global;
use crate::client::{Request, encode, fields};
use crate::command::{ls, purge, revive};
use crate::count::Quantity;
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::target::topic_path;
use crate::units::Span;

/// Look at dead jobs, revive or remove them
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse dead orders
  dormouse dead ls orders --error-prefix 'exit code 1' --older-than 1h
  dormouse dead revive orders --max 100
  dormouse dead revive orders --all --key-prefix 2026-
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
    #[command(flatten)]
    filter: Filter,
}

/// Which jobs.
#[derive(clap::Args)]
pub(crate) struct Filter {
    /// Only jobs whose error begins with this
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    error_prefix: Option<String>,
    /// Only jobs whose key begins with this
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    key_prefix: Option<String>,
    /// Only jobs that died longer ago than this
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    older_than: Option<Span>,
}

#[derive(Subcommand)]
enum Verb {
    /// List dead jobs, oldest first, with their last errors
    Ls {
        /// The topic
        topic: String,
        #[command(flatten)]
        range: ls::Range,
        #[command(flatten)]
        filter: Filter,
    },
    /// Make dead jobs ready, with fresh attempts, oldest first
    Revive {
        /// The topic
        topic: String,
        #[command(flatten)]
        how_many: Quantity,
        #[command(flatten)]
        filter: Filter,
    },
    /// Remove dead jobs, oldest first
    #[command(visible_alias = "cancel")]
    Rm {
        /// The topic
        topic: String,
        #[command(flatten)]
        how_many: Quantity,
        #[command(flatten)]
        filter: Filter,
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
            filter: self.filter,
        });
        match verb {
            Verb::Ls { topic, range, filter } => {
                let query = filter.query();
                ls::list(global, &topic, &["dead"], range, &query).await
            }
            Verb::Revive { topic, how_many, filter } if filter.is_given() => {
                sweep(global, &topic, "revive", how_many.max, &filter, "revived").await
            }
            Verb::Revive { topic, how_many, .. } => {
                revive::revive_topic(global, &topic, how_many.max).await
            }
            Verb::Rm { topic, how_many, filter, yes } => {
                if !yes {
                    purge::confirm(&format!("Remove dead jobs of {topic}?"))?;
                }
                sweep(global, &topic, "cancel", how_many.max, &filter, "removed").await
            }
        }
    }
}

impl Filter {
    fn is_given(&self) -> bool {
        self.error_prefix.is_some() || self.key_prefix.is_some() || self.older_than.is_some()
    }

    /// As parameters of a list.
    fn query(&self) -> String {
        let older_than = self.older_than.map(|span| Value::from(span).to_string());
        let given = [
            ("error_prefix", self.error_prefix.clone()),
            ("key_prefix", self.key_prefix.clone()),
            ("older_than", older_than),
        ];
        let pairs = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
        pairs.map(|(name, value)| format!("&{name}={}", encode(&value))).collect()
    }

    /// As fields of a request.
    fn fields(&self) -> Map<String, Value> {
        fields([
            ("error_prefix", self.error_prefix.clone().map(Into::into)),
            ("key_prefix", self.key_prefix.clone().map(Into::into)),
            ("older_than", self.older_than.map(Into::into)),
        ])
    }
}

/// How far one request came.
#[derive(Deserialize)]
struct Swept {
    count: u64,
    #[serde(default)]
    looked: u64,
    #[serde(default)]
    cursor: Option<String>,
}

/// Changes the jobs that fit, request after request: each looks at a bounded number.
async fn sweep(
    global: &Global,
    topic: &str,
    verb: &str,
    max: Option<u64>,
    filter: &Filter,
    done: &str,
) -> Result<(), Failure> {
    let client = global.client()?;
    let (mut count, mut looked, mut cursor) = (0, 0, None::<String>);
    loop {
        let mut body = filter.fields();
        body.extend(max.map(|max| ("max".to_owned(), Value::from(max.saturating_sub(count)))));
        body.extend(cursor.map(|cursor| ("cursor".to_owned(), Value::from(cursor))));
        let request = Request::post(format!("{}/{verb}", topic_path(topic))).json(&body);
        let swept: Swept = client.call(request).await?.parse()?;
        count += swept.count;
        looked += swept.looked;
        cursor = swept.cursor;
        if cursor.is_none() || max.is_some_and(|max| count >= max) {
            break;
        }
    }
    match global.output {
        Output::Json => {
            output::print_line(&json!({ "count": count, "looked": looked }).to_string())
        }
        Output::Table => output::print_line(&format!("{count} {done}, {looked} looked at")),
    }
}
