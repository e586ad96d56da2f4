//! `dormouse reserve`: take due jobs.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use crate::Global;
use crate::client::{Request, fields};
use crate::exit::{Exit, Failure};
use crate::job::Job;
use crate::output::{self, Output};
use crate::units::Span;

/// The longest wait of one request; a longer one is split into several.
const WAIT_STEP: Duration = Duration::from_secs(50);

/// Take due jobs; exit code 3 if there is none
///
/// Each job has a token: pass it to ack, nack, release or extend before the lease ends.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse reserve orders
  dormouse -o json reserve orders refunds --max 10 --wait 20s
  while dormouse -o json reserve orders --wait 1m > job.json; do ...; done")]
pub(crate) struct Args {
    /// The topics to take from
    #[arg(value_name = "TOPIC", required = true)]
    topics: Vec<String>,
    /// Take at most this many
    #[arg(long, value_name = "N", default_value_t = 1)]
    max: u32,
    /// Wait this long for the first one
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, default_value = "0s")]
    wait: Span,
    /// How long the leases last; each job's own ttr if not given
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    ttr: Option<Span>,
}

/// The jobs of a reserve.
#[derive(Debug, Deserialize)]
pub(crate) struct Jobs {
    pub(crate) jobs: Vec<Job>,
}

/// A reserve over some topics.
pub(crate) fn request(topics: &[String], max: u32, wait: Duration, ttr: Option<Span>) -> Request {
    let fields = fields([
        ("topics", Some(json!(topics))),
        ("max", Some(max.into())),
        ("wait", Some(json!(wait.as_millis() as u64))),
        ("ttr", ttr.map(Into::into)),
    ]);
    Request::post("/v1/reserve").json(&fields).waiting(wait)
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let client = global.client()?;
        let end = Instant::now() + self.wait.duration();
        let (reply, jobs) = loop {
            let wait = end.saturating_duration_since(Instant::now()).min(WAIT_STEP);
            let reply = client.call(request(&self.topics, self.max, wait, self.ttr)).await?;
            let jobs = reply.parse::<Jobs>()?.jobs;
            if !jobs.is_empty() || Instant::now() >= end {
                break (reply, jobs);
            }
        };
        if global.output == Output::Json {
            output::print_json(&reply.body)?;
        } else if !jobs.is_empty() {
            output::print(table(&jobs).as_bytes())?;
        }
        if jobs.is_empty() {
            return Err(Failure::with(Exit::NotFound, "no job is due"));
        }
        Ok(())
    }
}

fn table(jobs: &[Job]) -> String {
    let row = |job: &Job| {
        vec![
            job.topic.clone(),
            job.id.clone(),
            job.token.clone(),
            job.key_shown(),
            job.attempt.to_string(),
            job.due_at.clone(),
            job.late_ms.to_string(),
            job.preview(),
        ]
    };
    let header = ["topic", "id", "token", "key", "attempt", "due_at", "late_ms", "body"];
    output::table(&header, &jobs.iter().map(row).collect::<Vec<_>>())
}
