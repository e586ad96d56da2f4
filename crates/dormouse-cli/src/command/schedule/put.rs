//! `dormouse schedule put`: define a schedule, or change it.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{as_usage, path};
use crate::Global;
use crate::client::Request;
use crate::command::put::parse_header;
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::units::{At, Backoff, Span};

/// Put a job at each tick of a rule; the same definition again changes nothing
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse schedule put reports nightly 'make it' --cron '0 3 * * *' --zone Europe/Berlin
  dormouse schedule put mail digest '{\"kind\": \"daily\"}' --json --every 24h --overlap wait
  dormouse schedule put feeds poll --gap 5m --ttr 2m")]
pub(super) struct Args {
    /// The topic that its jobs are put into
    topic: String,
    /// Its name in the topic
    name: String,
    /// The body of each job; empty if not given
    body: Option<String>,
    /// The body is JSON
    #[arg(long, requires = "body")]
    json: bool,
    /// The rule: minutes hours days months weekdays, or 6 fields with seconds first
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// The zone of the expression: an IANA name or an offset like +05:30; UTC if not given
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    zone: Option<String>,
    /// Ticks at this distance instead
    #[arg(long, value_name = "SPAN")]
    every: Option<Span>,
    /// Ticks this long after the job before has ended instead
    #[arg(long, value_name = "SPAN")]
    gap: Option<Span>,
    #[command(flatten)]
    policy: Policy,
    #[command(flatten)]
    template: Template,
}

#[derive(clap::Args)]
struct Policy {
    /// A tick while an earlier job lives: skip (if not given), wait, allow or replace
    #[arg(long, value_name = "MODE")]
    overlap: Option<String>,
    /// Ticks that passed while nothing ran: one (if not given) or all
    #[arg(long, value_name = "MODE")]
    catchup: Option<String>,
    /// A tick that is later than this is missed
    #[arg(long, value_name = "SPAN")]
    late_max: Option<Span>,
    /// A job is due up to this much after its tick
    #[arg(long, value_name = "SPAN")]
    jitter: Option<Span>,
    /// No tick before this; --every is counted from it
    #[arg(long, value_name = "INSTANT")]
    start_at: Option<At>,
    /// No tick after this
    #[arg(long, value_name = "INSTANT")]
    end_at: Option<At>,
    /// The schedule ends after this many jobs
    #[arg(long, value_name = "N")]
    ticks_max: Option<u64>,
    /// If there is one of this name: replace (if not given), keep or reject
    #[arg(long, value_name = "MODE")]
    on_conflict: Option<String>,
    /// Only if the schedule has this version
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,
}

#[derive(clap::Args)]
struct Template {
    /// Lower is taken first; 1024 if not given
    #[arg(long, value_name = "N")]
    priority: Option<u32>,
    /// How long a lease lasts; the topic's default or 60s if not given
    #[arg(long, value_name = "SPAN")]
    ttr: Option<Span>,
    /// After this many attempts a job is dead; 0 is no limit
    #[arg(long, value_name = "N")]
    attempts_max: Option<u32>,
    /// Time between attempts: fixed:10s, exponential:1s:2:10m or list:1s,5s
    #[arg(long, value_name = "BACKOFF")]
    backoff: Option<Backoff>,
    /// A job dies if nobody takes it so long after it was due; 0 = never
    #[arg(long, value_name = "SPAN")]
    expires_after: Option<Span>,
    /// What the topic's limits of groups are counted by
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// A header, returned with each job; can be given more than once
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = parse_header)]
    headers: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Defined {
    code: String,
    version: u64,
    next_at: Option<String>,
    words: String,
    notes: Vec<String>,
}

impl Args {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let path = path(&self.topic, &self.name);
        let request = Request::put(path).json(&self.form()?);
        let reply = global.client()?.call(request).await.map_err(as_usage)?;
        if global.output == Output::Json {
            return output::print_json(&reply.body);
        }
        output::print(shown(&reply.parse()?).as_bytes())
    }

    fn form(self) -> Result<Map<String, Value>, Failure> {
        let mut form = Map::new();
        if let Some(body) = self.body {
            let (field, value) = match self.json {
                false => ("text", Value::from(body)),
                true => {
                    let json: Box<RawValue> = serde_json::from_str(&body)
                        .map_err(|error| Failure::usage(format!("BODY is not JSON: {error}")))?;
                    let value = serde_json::to_value(json);
                    ("body", value.map_err(|error| Failure::usage(error.to_string()))?)
                }
            };
            form.insert(field.to_owned(), value);
        }
        let (policy, template) = (self.policy, self.template);
        if !template.headers.is_empty() {
            let headers = template.headers.into_iter();
            let headers: Map<_, _> = headers.map(|(name, value)| (name, value.into())).collect();
            form.insert("headers".to_owned(), Value::Object(headers));
        }
        let fields: [(&str, Option<Value>); 19] = [
            ("cron", self.cron.map(Value::from)),
            ("zone", self.zone.map(Value::from)),
            ("every", self.every.map(Value::from)),
            ("gap", self.gap.map(Value::from)),
            ("overlap", policy.overlap.map(Value::from)),
            ("catchup", policy.catchup.map(Value::from)),
            ("late_max", policy.late_max.map(Value::from)),
            ("jitter", policy.jitter.map(Value::from)),
            ("start_at", policy.start_at.map(Value::from)),
            ("end_at", policy.end_at.map(Value::from)),
            ("ticks_max", policy.ticks_max.map(Value::from)),
            ("on_conflict", policy.on_conflict.map(Value::from)),
            ("if_version", policy.if_version.map(Value::from)),
            ("priority", template.priority.map(Value::from)),
            ("ttr", template.ttr.map(Value::from)),
            ("attempts_max", template.attempts_max.map(Value::from)),
            ("backoff", template.backoff.map(Value::from)),
            ("expires_after", template.expires_after.map(Value::from)),
            ("group", template.group.map(Value::from)),
        ];
        let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        form.extend(given);
        Ok(form)
    }
}

/// The outcome, the rule in words, the next tick and the notes.
fn shown(defined: &Defined) -> String {
    let Defined { code, version, next_at, words, notes } = defined;
    let next = next_at.iter().map(|at| format!("next tick: {}\n", output::clean(at)));
    let notes = notes.iter().map(|note| format!("note: {}\n", output::clean(note)));
    format!(
        "{}, version {version}: {}\n{}{}",
        output::clean(code),
        output::clean(words),
        next.collect::<String>(),
        notes.collect::<String>()
    )
}
