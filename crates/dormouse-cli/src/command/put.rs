//! `dormouse put`: add a job, or a file full of them.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Read};
use std::path::PathBuf;

use clap::ValueEnum;
use dormouse_server::limits::HTTP_BODY_BYTES_MAX;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::Global;
use crate::client::{Request, fields};
use crate::exit::Failure;
use crate::job::to_base64;
use crate::ndjson;
use crate::output::{self, Output};
use crate::target::topic_path;
use crate::units::{At, Backoff, Span};

/// Add a job, or many from a file
///
/// The body is BODY, --file, or stdin if that is not a terminal or BODY is -. It is stored as text
/// if it is UTF-8, else as bytes; --json stores it as JSON, exactly as written.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse put orders '{\"order\": 42}' --json --delay 30m --key 42
  dormouse put reminders 'wake up' --at 2027-01-01T09:00:00+01:00
  dormouse put images --file cat.jpg --ttr 5m --backoff exponential:1s:2:10m
  dormouse put orders --ndjson --file orders.ndjson

Each line of --ndjson is an object with the fields of the HTTP API:
  {\"body\": {\"order\": 42}, \"delay\": \"30m\", \"key\": \"42\"}")]
pub(crate) struct Args {
    /// The topic
    topic: String,
    /// The job's body; - reads it from stdin
    body: Option<String>,
    /// Read the body from this file
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    file: Option<PathBuf>,
    /// The body is JSON
    #[arg(long)]
    json: bool,
    /// Read whole jobs, one JSON object per line, and put them in batches
    #[arg(long, conflicts_with_all = ["json", "Options"])]
    ndjson: bool,
    #[command(flatten)]
    options: Options,
}

#[derive(clap::Args)]
struct Options {
    /// Due after this delay
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, conflicts_with = "at")]
    delay: Option<Span>,
    /// Due at this instant; now if neither is given
    #[arg(long, value_name = "INSTANT")]
    at: Option<At>,
    /// Your own id, unique in the topic while the job lives
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// How to resolve a taken key; keep if not given
    #[arg(long, value_name = "MODE", requires = "key")]
    on_conflict: Option<OnConflict>,
    /// Keep the key taken for this long after the ack
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, requires = "key")]
    key_ttl: Option<Span>,
    /// Lower is taken first; 1024 if not given
    #[arg(long, value_name = "N")]
    priority: Option<u32>,
    /// How long a lease lasts; the topic's default or 60s if not given
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    ttr: Option<Span>,
    /// After this many attempts the job is dead; 0 is no limit
    #[arg(long, value_name = "N")]
    attempts_max: Option<u32>,
    /// Time between attempts: fixed:10s, exponential:1s:2:10m or list:1s,5s
    #[arg(long, value_name = "BACKOFF")]
    backoff: Option<Backoff>,
    /// The job dies if nobody takes it so long after it was due; 0 is never
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    expires_after: Option<Span>,
    /// What the topic's limits of groups are counted by
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Where the job is pushed to; it must match a pattern of the topic
    #[arg(long, value_name = "URL")]
    push_url: Option<String>,
    /// A header, returned with the job; can be given more than once
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = parse_header)]
    headers: Vec<(String, String)>,
}

#[derive(Clone, Copy, ValueEnum)]
enum OnConflict {
    /// Keep the job that has the key
    Keep,
    /// Refuse this one (exit code 4)
    Reject,
    /// Replace the job that has the key
    Replace,
    /// Replace if this one is due earlier
    Earliest,
    /// Replace if this one is due later
    Latest,
}

impl OnConflict {
    fn name(self) -> &'static str {
        match self {
            OnConflict::Keep => "keep",
            OnConflict::Reject => "reject",
            OnConflict::Replace => "replace",
            OnConflict::Earliest => "earliest",
            OnConflict::Latest => "latest",
        }
    }
}

pub(super) fn parse_header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("give name=value".to_owned()),
    }
}

/// The body of the request.
#[derive(Serialize)]
struct Put {
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(flatten)]
    options: Map<String, Value>,
}

#[derive(Deserialize)]
struct PutReply {
    id: String,
    code: String,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    due_at: Option<String>,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let path = format!("{}/jobs", topic_path(&self.topic));
        if self.ndjson {
            let body = self.body.as_deref();
            if body.is_some_and(|body| body != "-") {
                return Err(Failure::usage("--ndjson reads from stdin or --file, not from BODY"));
            }
            let source: Box<dyn Read> = match &self.file {
                Some(file) => Box::new(open(file)?),
                None => Box::new(io::stdin()),
            };
            return ndjson::put(global, &path, source).await;
        }
        let bytes = self.read_body()?;
        let put = Put::new(bytes, self.json, self.options.fields())?;
        let reply = global.client()?.call(Request::post(path).json(&put)).await?;
        if global.output == Output::Json {
            return output::print_json(&reply.body);
        }
        let stored: PutReply = reply.parse()?;
        let (state, due_at) = (stored.state.unwrap_or_default(), stored.due_at.unwrap_or_default());
        let row = vec![stored.id, stored.code, state, due_at];
        output::print(output::table(&["id", "code", "state", "due_at"], &[row]).as_bytes())
    }

    fn read_body(&self) -> Result<Vec<u8>, Failure> {
        match (&self.body, &self.file) {
            (Some(body), _) if body != "-" => Ok(body.clone().into_bytes()),
            (_, Some(file)) => read_all(open(file)?),
            (None, None) if io::stdin().is_terminal() => Err(Failure::usage(
                "there is no body: give BODY ('' is an empty one), --file, or something on stdin",
            )),
            _ => read_all(io::stdin()),
        }
    }
}

impl Options {
    fn fields(self) -> Map<String, Value> {
        let headers: BTreeMap<String, String> = self.headers.into_iter().collect();
        let headers = (!headers.is_empty()).then(|| headers.into_iter().collect());
        fields([
            ("delay", self.delay.map(Into::into)),
            ("at", self.at.map(Into::into)),
            ("key", self.key.map(Into::into)),
            ("on_conflict", self.on_conflict.map(|mode| mode.name().into())),
            ("key_ttl", self.key_ttl.map(Into::into)),
            ("priority", self.priority.map(Into::into)),
            ("ttr", self.ttr.map(Into::into)),
            ("attempts_max", self.attempts_max.map(Into::into)),
            ("backoff", self.backoff.map(Into::into)),
            ("expires_after", self.expires_after.map(Into::into)),
            ("url", self.push_url.map(Into::into)),
            ("group", self.group.map(Into::into)),
            ("headers", headers),
        ])
    }
}

impl Put {
    fn new(bytes: Vec<u8>, is_json: bool, options: Map<String, Value>) -> Result<Put, Failure> {
        let mut put = Put { body: None, text: None, base64: None, options };
        match String::from_utf8(bytes) {
            Ok(text) if is_json => {
                let raw = serde_json::from_str(&text)
                    .map_err(|error| Failure::usage(format!("the body is no JSON: {error}")))?;
                put.body = Some(raw);
            }
            Ok(text) => put.text = Some(text),
            Err(_) if is_json => return Err(Failure::usage("the body is no JSON: it is no UTF-8")),
            Err(error) => put.base64 = Some(to_base64(error.as_bytes())),
        }
        Ok(put)
    }
}

fn open(file: &PathBuf) -> Result<std::fs::File, Failure> {
    std::fs::File::open(file)
        .map_err(|error| Failure::usage(format!("--file {}: {error}", file.display())))
}

/// Reads everything, up to the largest body that a server accepts.
fn read_all(source: impl Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    source
        .take(HTTP_BODY_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new(format!("cannot read the body: {error}")))?;
    if bytes.len() > HTTP_BODY_BYTES_MAX {
        let text = format!("the body has more than {HTTP_BODY_BYTES_MAX} bytes");
        return Err(Failure::new(format!("{text}; put it elsewhere and its address in the job")));
    }
    Ok(bytes)
}
