//! `dormouse schedule get|rm|pause|resume|skip|replan|run|next`: one schedule.

use serde::Deserialize;
use serde_json::Value;

use super::path;
use crate::Global;
use crate::client::{Request, encode, fields};
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::units::{At, Span};

/// A schedule by its name.
#[derive(clap::Args)]
pub(super) struct ScheduleArgs {
    /// The topic
    topic: String,
    /// The schedule's name
    name: String,
}

#[derive(clap::Args)]
pub(super) struct Remove {
    #[command(flatten)]
    named: ScheduleArgs,
    /// Cancel its newest job, too, if that still lives
    #[arg(long)]
    jobs: bool,
}

#[derive(clap::Args)]
pub(super) struct Pause {
    #[command(flatten)]
    named: ScheduleArgs,
    /// For how long; until it is resumed if not given
    #[arg(long = "for", value_name = "SPAN")]
    span: Option<Span>,
}

#[derive(clap::Args)]
pub(super) struct Run {
    #[command(flatten)]
    named: ScheduleArgs,
    /// A job for each tick from this instant on instead; with --to
    #[arg(long, value_name = "INSTANT", requires = "to")]
    from: Option<At>,
    /// Ticks before this instant; with --from
    #[arg(long, value_name = "INSTANT", requires = "from")]
    to: Option<At>,
}

#[derive(clap::Args)]
pub(super) struct Next {
    #[command(flatten)]
    named: ScheduleArgs,
    /// Ticks from this instant on; now if not given
    #[arg(long, value_name = "INSTANT")]
    from: Option<At>,
    /// Ticks before this instant
    #[arg(long, value_name = "INSTANT")]
    to: Option<At>,
    /// How many; 10 if not given, at most 1000
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

#[derive(Deserialize)]
struct Schedule {
    version: u64,
    state: String,
    words: String,
    next: Vec<String>,
    counts: std::collections::BTreeMap<String, u64>,
    #[serde(default)]
    last: Option<std::collections::BTreeMap<String, String>>,
}

impl ScheduleArgs {
    fn path(&self) -> String {
        path(&self.topic, &self.name)
    }

    pub(super) async fn get(self, global: &Global) -> Result<(), Failure> {
        show(global, Request::get(self.path())).await
    }

    /// A change without options.
    pub(super) async fn change(self, global: &Global, verb: &str) -> Result<(), Failure> {
        let request = Request::post(format!("{}/{verb}", self.path())).json(&fields([]));
        show(global, request).await
    }
}

impl Remove {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let jobs = if self.jobs { "?jobs=true" } else { "" };
        let request = Request::delete(format!("{}{jobs}", self.named.path()));
        let reply = global.client()?.call(request).await?;
        match global.output {
            Output::Json => output::print_json(&reply.body),
            Output::Table => output::print_line("removed"),
        }
    }
}

impl Pause {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let form = fields([("for", self.span.map(Into::into))]);
        show(global, Request::post(format!("{}/pause", self.named.path())).json(&form)).await
    }
}

impl Run {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let path = self.named.path();
        let request = match (self.from, self.to) {
            (Some(from), Some(to)) => Request::post(format!("{path}/backfill"))
                .json(&fields([("from", Some(from.into())), ("to", Some(to.into()))])),
            _ => Request::post(format!("{path}/run")).json(&fields([])),
        };
        let reply = global.client()?.call(request).await?;
        if global.output == Output::Json {
            return output::print_json(&reply.body);
        }
        let answer: Value = reply.parse()?;
        let results = answer.get("results").and_then(Value::as_array);
        let jobs = results.map_or_else(|| vec![answer.clone()], Clone::clone);
        let mut lines = String::new();
        for job in &jobs {
            let text = |name| job.get(name).and_then(Value::as_str).unwrap_or_default();
            let line = if text("id").is_empty() { text("detail") } else { text("id") };
            lines.push_str(&output::clean(line));
            lines.push('\n');
        }
        output::print(lines.as_bytes())
    }
}

impl Next {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Ticks {
            ticks: Vec<String>,
        }
        let mut path = format!("{}/ticks?limit={}", self.named.path(), self.limit.unwrap_or(10));
        for (name, at) in [("from", self.from), ("to", self.to)] {
            if let Some(at) = at {
                let at = Value::from(at);
                let text = at.as_str().map_or_else(|| at.to_string(), str::to_owned);
                path.push_str(&format!("&{name}={}", encode(&text)));
            }
        }
        let reply = global.client()?.call(Request::get(path)).await?;
        if global.output == Output::Json {
            return output::print_json(&reply.body);
        }
        let Ticks { ticks } = reply.parse()?;
        let lines = ticks.iter().map(|tick| format!("{}\n", output::clean(tick)));
        output::print(lines.collect::<String>().as_bytes())
    }
}

/// Sends a request that is answered with a schedule, and shows it.
async fn show(global: &Global, request: Request) -> Result<(), Failure> {
    let reply = global.client()?.call(request).await?;
    if global.output == Output::Json {
        return output::print_json(&reply.body);
    }
    output::print(shown(&reply.parse()?).as_bytes())
}

fn shown(schedule: &Schedule) -> String {
    let Schedule { version, state, words, next, counts, last } = schedule;
    let mut text = format!("{}: {}\n", output::clean(state), output::clean(words));
    text.push_str(&format!("version: {version}\n"));
    let counts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    text.push_str(&format!("ticks: {}\n", output::clean(&counts.join(", "))));
    if let Some(last) = last {
        let field = |name| last.get(name).map(String::as_str).unwrap_or_default();
        let line = format!("last: {} (job {})", field("tick"), field("id"));
        text.push_str(&format!("{}\n", output::clean(&line)));
    }
    next.iter().for_each(|tick| text.push_str(&format!("  {}\n", output::clean(tick))));
    text
}
