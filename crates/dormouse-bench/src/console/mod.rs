//! `dormouse-bench console`: what open consoles cost a server with many jobs and topics.
//!
//! The store is filled by the engine in this process; then the program serves it. Viewers do what
//! the overview and the screen of a topic do: a pulse stream each, and every two seconds all calls
//! of both. Beside them jobs come due at a steady rate. Lateness is from the due time until the
//! consumer has read the whole answer, over HTTP, with and without viewers.

mod http;
mod load;
mod server;
mod store;
mod viewer;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::latency::Latencies;
use crate::progress::{self, note};
use crate::{Result, report, run};
use http::Http;
use server::Server;
use viewer::Times;

/// The flags of `console`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ConsolePlan {
    /// Jobs in the store
    #[arg(long, default_value_t = 10_000_000)]
    jobs: u64,
    /// Their topics; the first one has a tenth of the jobs
    #[arg(long, default_value_t = 100_000)]
    topics: u64,
    /// Open consoles
    #[arg(long, default_value_t = 10)]
    viewers: usize,
    /// Seconds of the load, first alone, then beside the viewers
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Jobs of the load that come due each second
    #[arg(long, default_value_t = 1_000)]
    rate: u64,
    /// Where to make a directory [default: the temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// This project's server [default: `dormouse` next to this program]
    #[arg(long)]
    dormouse: Option<PathBuf>,
}

/// Pulse streams that one address may have open.
const VIEWERS_MAX: usize = 50;

type Figures = Map<String, Value>;

pub(crate) fn run(plan: &ConsolePlan) -> Result<()> {
    let is_small = plan.topics < 20 || plan.jobs < 20 * plan.topics.min(1_000);
    if is_small || plan.seconds == 0 || plan.rate < 10 {
        return Err("give at least 20 topics, 20 jobs for each, a second, and a rate of 10".into());
    }
    if plan.viewers == 0 || plan.viewers > VIEWERS_MAX {
        return Err(format!("give 1 to {VIEWERS_MAX} viewers").into());
    }
    let parent = run::parent_on_disk(plan.dir.as_deref())?;
    let dir = tempfile::Builder::new().prefix("dormouse-console-").tempdir_in(parent)?;
    let mut figures = Figures::new();
    let mut add = |name: &str, value: f64| {
        figures.insert(name.to_owned(), Value::from(value));
    };
    for (name, value) in [("jobs", plan.jobs), ("topics", plan.topics), ("rate", plan.rate)] {
        add(name, value as f64);
    }
    add("viewers", plan.viewers as f64);
    add("fill_s", store::fill(dir.path(), plan.jobs, plan.topics)?.as_secs_f64());
    let began = Instant::now();
    let server = Server::start(dir.path(), plan.dormouse.as_deref())?;
    add("start_s", began.elapsed().as_secs_f64());
    first_looks(&server, plan, &mut add)?;
    note(&format!("console: the load alone, {} s", plan.seconds));
    let mut alone = load::run(server.addr, plan.rate, plan.seconds)?;
    add("rss_start_mib", server.rss_mib()?);
    note(&format!("console: {} viewers, {} s", plan.viewers, plan.seconds));
    let (mut beside, times, beats) = beside_viewers(&server, plan)?;
    add("rss_end_mib", server.rss_mib()?);
    for (name, late) in [("alone", &mut alone), ("viewed", &mut beside)] {
        add(&format!("late_{name}_jobs"), late.len() as f64);
        add(&format!("late_{name}_p50_ms"), ms(late.percentile(50)));
        add(&format!("late_{name}_p99_ms"), ms(late.percentile(99)));
    }
    add("beats_per_viewer_s", beats as f64 / plan.viewers as f64 / plan.seconds as f64);
    for (name, mut times) in times {
        add(&format!("{name}_calls"), times.len() as f64);
        add(&format!("{name}_p50_ms"), ms(times.percentile(50)));
        add(&format!("{name}_p99_ms"), ms(times.percentile(99)));
    }
    progress::clear();
    report::print(Value::Object(figures))
}

fn ms(us: u64) -> f64 {
    us as f64 / 1e3
}

/// How long a browser waits that opens the overview of a server that has just started: until the
/// first byte, and until the first data.
fn first_looks(server: &Server, plan: &ConsolePlan, add: &mut impl FnMut(&str, f64)) -> Result<()> {
    let began = Instant::now();
    for (name, path) in viewer::first_calls(plan.topics) {
        let times = Http::open(server.addr)?.get(&path)?;
        add(&format!("first_{name}_byte_ms"), times.first_byte.as_secs_f64() * 1e3);
        add(&format!("first_{name}_data_ms"), times.all.as_secs_f64() * 1e3);
    }
    let (first_byte, first_data) = Http::open(server.addr)?.first_event("/v1/pulse")?;
    add("first_pulse_byte_ms", first_byte.as_secs_f64() * 1e3);
    add("first_pulse_data_ms", first_data.as_secs_f64() * 1e3);
    // One after the other; a browser asks for some of them at once.
    add("first_overview_ms", began.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

/// The load beside the viewers: its lateness, the times of their calls, and their beats.
fn beside_viewers(server: &Server, plan: &ConsolePlan) -> Result<(Latencies, Times, u64)> {
    let end = Instant::now() + Duration::from_secs(plan.seconds);
    let (addr, topics) = (server.addr, plan.topics);
    thread::scope(|scope| {
        let mut viewers = Vec::new();
        for number in 0..plan.viewers {
            let calls = scope.spawn(move || viewer::look(addr, number, topics, end));
            let stream = scope.spawn(move || Http::open(addr)?.count_events(end));
            viewers.push((calls, stream));
        }
        let late = load::run(addr, plan.rate, plan.seconds);
        let (mut times, mut beats) = (Times::new(), 0);
        for (calls, stream) in viewers {
            let died = || crate::Error::from("a viewer panicked");
            for (name, more) in calls.join().map_err(|_| died())?? {
                times.entry(name).or_default().append(more);
            }
            beats += stream.join().map_err(|_| died())??;
        }
        Ok((late?, times, beats))
    })
}
