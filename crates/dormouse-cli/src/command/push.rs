//! `dormouse push`: deliver the jobs of a topic to a URL.

use clap::Subcommand;
use serde_json::{Map, Value};

use crate::Global;
use crate::client::{Client, Reply, Request, fields};
use crate::command::put::parse_header;
use crate::command::topic::tree;
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::target::topic_path;
use crate::units::Span;

/// Let the server call a URL for each job of a topic
#[derive(clap::Args)]
#[command(after_help = "\
The server must run with --push. The secret that signs requests is shown once, by the first `set`
and by `rotate`.

Examples:
  dormouse push set orders https://example.com/hook
  dormouse push set orders https://example.com/hook --concurrency 50 --fatal 400,422
  dormouse push test orders
  dormouse push rotate orders --keep 24h
  dormouse push resume orders")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Say where jobs go; what is not given is reset to its default
    Set(Box<Set>),
    /// Show where jobs go, and how that goes; neither the secret nor values of headers
    Get {
        /// The topic
        topic: String,
    },
    /// Push no more; the jobs stay
    Rm {
        /// The topic
        topic: String,
    },
    /// Make a new secret and show it; the old one signs for a while, too
    Rotate {
        /// The topic
        topic: String,
        /// How long the old secret signs, too
        #[arg(long, value_name = "SPAN", default_value = "24h")]
        keep: Span,
    },
    /// Send a request that is none of a job, and show what came of it
    Test {
        /// The topic
        topic: String,
    },
    /// Go on after pushes were disabled
    Resume {
        /// The topic
        topic: String,
    },
}

#[derive(clap::Args)]
struct Set {
    /// The topic
    topic: String,
    /// The URL, in its normal form
    #[arg(value_name = "URL")]
    to: String,
    /// A pattern of URLs that jobs may bring: https://*.example.com/; can be given more than once
    #[arg(long = "job-url", value_name = "PATTERN")]
    job_urls: Vec<String>,
    /// A header of each request; can be given more than once; *** keeps the value that is stored
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = parse_header)]
    headers: Vec<(String, String)>,
    /// Time for a whole delivery, 1 to 30 s
    #[arg(long, value_name = "SPAN")]
    timeout: Option<Span>,
    /// The most jobs of the topic that may be leased at once
    #[arg(long, value_name = "N")]
    concurrency: Option<u64>,
    /// Statuses that kill a job at once, as in 400,422
    #[arg(long, value_name = "STATUSES", value_delimiter = ',')]
    fatal: Vec<u16>,
    /// Keep nothing of failed replies
    #[arg(long)]
    no_reply: bool,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let client = global.client()?;
        let reply = match self.verb {
            Verb::Set(set) => set.send(&client).await?,
            Verb::Get { topic } => client.call(Request::get(path(&topic))).await?,
            Verb::Rm { topic } => client.call(Request::delete(path(&topic))).await?,
            Verb::Rotate { topic, keep } => {
                let body = fields([("keep", Some(keep.into()))]);
                client.call(post(&topic, "rotate").json(&body)).await?
            }
            Verb::Test { topic } => client.call(post(&topic, "test")).await?,
            Verb::Resume { topic } => client.call(post(&topic, "resume")).await?,
        };
        if global.output == Output::Json {
            return output::print_json(&reply.body);
        }
        let shown: Map<String, Value> = reply.parse()?;
        output::print(tree(&shown).as_bytes())
    }
}

impl Set {
    async fn send(self, client: &Client) -> Result<Reply, Failure> {
        let headers = self.headers.into_iter().map(|(name, value)| (name, value.into()));
        let headers: Map<String, Value> = headers.collect();
        let body = fields([
            ("url", Some(self.to.into())),
            ("job_urls", (!self.job_urls.is_empty()).then(|| self.job_urls.into())),
            ("headers", (!headers.is_empty()).then(|| headers.into())),
            ("timeout", self.timeout.map(Into::into)),
            ("concurrency", self.concurrency.map(Into::into)),
            ("fatal", (!self.fatal.is_empty()).then(|| self.fatal.into())),
            ("keep_reply", self.no_reply.then_some(false.into())),
        ]);
        client.call(Request::put(path(&self.topic)).json(&body)).await
    }
}

fn path(topic: &str) -> String {
    format!("{}/push", topic_path(topic))
}

fn post(topic: &str, verb: &str) -> Request {
    Request::post(format!("{}/{verb}", path(topic)))
}
