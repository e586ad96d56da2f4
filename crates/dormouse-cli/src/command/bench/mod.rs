//! `dormouse bench`: measures a running server over HTTP.
//!
//! The client shares the machine with the server, so it must be cheap: requests are bytes built
//! once, answers are read by a few lines made for them, nothing is allocated per request.

mod clock;
mod conn;
mod consume;
mod head;
mod late;
mod load;
mod ndjson;
mod plan;
mod put;
mod report;
mod request;
mod scan;
mod times;

use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;
use tokio::sync::watch;

use crate::Global;
use crate::exit::Failure;
use crate::output::{self, Output};
use load::Stop;
use plan::{Plan, Topics};
use report::Report;
use request::Noise;

/// The exit code of a program that SIGINT ended.
const INTERRUPTED: u8 = 130;

/// Measure a running server over HTTP
#[derive(clap::Args)]
#[command(after_help = "\
Phases:
  put      one job per request, due in 30 days
  ndjson   --batch jobs per request, ready at once
  consume  reserve 100 and ack 100, as two requests; then each ack with the next reserve
  late     --rate jobs a second come due while clients wait: from due time to answer, by the
           clock of this machine, which therefore has to be the server's

Puts into the topics PREFIX-put, PREFIX-ready and PREFIX-late, and purges them in the end.
The client runs on one thread; `client %` is the part of it that a phase needed.

Examples:
  dormouse bench
  dormouse bench --only put --connections 200 --seconds 10 -o json")]
pub(crate) struct Args {
    /// Only these phases
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PHASES")]
    only: Vec<Phase>,
    /// How long each phase takes
    #[arg(long, default_value = "5", value_parser = seconds)]
    seconds: Duration,
    /// Connections at the same time
    #[arg(long, default_value = "50", value_name = "N", value_parser = within::<1, 10_000>)]
    connections: usize,
    /// Bytes in a job's body
    #[arg(long, default_value = "100", value_name = "BYTES",
          value_parser = within::<{ request::BODY_MIN }, 1_048_576>)]
    body: usize,
    /// Jobs per request in the phase ndjson
    #[arg(long, default_value = "500", value_name = "JOBS", value_parser = within::<1, 4_096>)]
    batch: usize,
    /// Jobs per second in the phase late
    #[arg(long, default_value = "1000", value_name = "JOBS", value_parser = within::<1, 1_000_000>)]
    rate: usize,
    /// Prefix of the topics' names
    #[arg(long, default_value = "bench", value_name = "PREFIX")]
    topic: String,
    /// Leave the jobs there
    #[arg(long)]
    keep: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Phase {
    Put,
    Ndjson,
    Consume,
    Late,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "0.01 to 86400 are possible".to_owned())
}

fn within<const MIN: usize, const MAX: usize>(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (MIN..=MAX).contains(number));
    number.ok_or_else(|| format!("{MIN} to {MAX} are possible"))
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let stop = stop_on_interrupt();
        let plan = self.plan(global, stop)?;
        // A server that is absent or refuses the token is reported before anything is put.
        for topic in plan.topics.all() {
            plan.ready(topic).await?;
        }
        let mut report = self.report(global);
        for phase in [Phase::Put, Phase::Ndjson, Phase::Consume, Phase::Late] {
            let chosen = self.only.is_empty() || self.only.contains(&phase);
            if !chosen || *plan.stop.borrow() {
                continue;
            }
            if let Err(failure) = measure(phase, &plan, &mut report).await {
                report.trouble.add(failure.text());
            }
            if report.is_hopeless() {
                break;
            }
        }
        report.is_interrupted = *plan.stop.borrow();
        match global.output {
            Output::Json => output::print_line(&report.json())?,
            Output::Table => output::print(report.table().as_bytes())?,
        }
        if !self.keep {
            purge(&plan, &mut report).await;
        }
        end(&report)
    }

    fn plan(&self, global: &Global, stop: Stop) -> Result<Plan, Failure> {
        let client = global.client()?;
        Ok(Plan {
            route: client.route()?,
            client,
            connections: self.connections,
            time: self.seconds,
            body_len: self.body,
            batch: self.batch,
            rate: self.rate,
            topics: Topics::new(&self.topic),
            noise: Noise::new(0),
            stop,
        })
    }

    fn report(&self, global: &Global) -> Report {
        let mut report = Report::default();
        let mut set = |name: &str, value| report.setup.insert(name.to_owned(), value);
        set("url", json!(global.url));
        set("seconds", json!(self.seconds.as_secs_f64()));
        set("connections", json!(self.connections));
        set("body", json!(self.body));
        set("batch", json!(self.batch));
        set("rate", json!(self.rate));
        report
    }
}

async fn measure(phase: Phase, plan: &Plan, report: &mut Report) -> Result<(), Failure> {
    match phase {
        Phase::Put => report.add("put", "one job per request", put::run(plan).await?),
        Phase::Ndjson => {
            let what = format!("{} jobs per request", plan.batch);
            report.add("ndjson", what, ndjson::run(plan).await?);
        }
        Phase::Consume => {
            let consumed = consume::run(plan).await?;
            let max = consume::RESERVE_MAX;
            report.add("consume", format!("reserve {max}, then ack {max}"), consumed.apart);
            let what = format!("ack {max} and reserve {max} at once");
            report.add("ack_reserve", what, consumed.together);
        }
        Phase::Late => report.add_late(late::run(plan).await?),
    }
    Ok(())
}

async fn purge(plan: &Plan, report: &mut Report) {
    for topic in plan.topics.all() {
        if let Err(failure) = plan.purge(topic).await {
            report.trouble.add(format!("cannot purge {topic}: {}", failure.text()));
        }
    }
}

fn end(report: &Report) -> Result<(), Failure> {
    match &report.trouble.first {
        Some(first) => {
            let count = report.trouble.count;
            Err(Failure::new(format!("{count} errors, the first: {first}")))
        }
        None if report.is_interrupted => Err(Failure::silent(INTERRUPTED)),
        None => Ok(()),
    }
}

/// The first interrupt ends the measuring, the second everything.
fn stop_on_interrupt() -> Stop {
    let (sender, stop) = watch::channel(false);
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
        sender.send_replace(true);
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(INTERRUPTED.into());
        }
    });
    stop
}
