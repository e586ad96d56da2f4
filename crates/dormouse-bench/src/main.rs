//! Measures Dormouse. Progress goes to stderr, one line of JSON to stdout.
//!
//! Of the engine, the parent process orchestrates; every phase runs in a process of its own (this
//! program, started again), so that its peak memory is its own and the filling one can be killed.

mod cache;
mod cancel;
mod child;
mod client;
mod console;
mod drain;
mod fill;
mod herd;
mod idle;
mod keyed;
mod late;
mod late_busy;
mod latency;
mod leftovers;
mod library;
mod limits;
mod pace;
mod peers;
mod plan;
mod progress;
mod push;
mod raw;
mod redis;
mod reopen;
mod report;
mod rss;
mod run;
mod schedules;
mod stalls;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Anything that makes the figures worthless ends the run.
type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

#[derive(Parser)]
#[command(about = "Measures Dormouse; prints one line of JSON on stdout, progress on stderr")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The engine in this process, without a server
    Engine(plan::Plan),
    /// Single calls of the library, from one thread and from several
    Library(library::LibraryPlan),
    /// Limits of topics and groups: what they cost, what they give, whom they hold up
    Limits(limits::LimitsPlan),
    /// How long others wait while the engine is busy with much at once
    Stalls(stalls::StallsPlan),
    /// Schedules that rest, and many ticks at once
    Schedules(schedules::SchedulesPlan),
    /// Deliveries to a sink on loopback: per second, how late, and what idleness costs
    Push(push::PushPlan),
    /// Open consoles beside a load, on a store with many jobs and topics
    Console(console::ConsolePlan),
    /// The backend on a Redis that is started for it, against plain scripts
    Redis(redis::RedisPlan),
    /// This project's server beside Redis and beanstalkd, under the same load
    Peers(peers::PeersPlan),
    /// A shop's day over RESP: puts, many cancels, the rest consumed on time
    Mix(peers::mix::MixPlan),
    /// The library's client beside raw connections, on one server
    Connect(peers::connect::ConnectPlan),
    /// One phase, for the parent process
    #[command(hide = true)]
    Phase {
        /// The task, as JSON
        task: String,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Engine(plan) => run::engine(plan),
        Command::Library(plan) => library::run(&plan),
        Command::Limits(plan) => limits::run(&plan),
        Command::Stalls(plan) => stalls::run(&plan),
        Command::Schedules(plan) => schedules::run(&plan),
        Command::Push(plan) => push::run(&plan),
        Command::Console(plan) => console::run(&plan),
        Command::Redis(plan) => redis::run(&plan),
        Command::Peers(plan) => peers::run(&plan),
        Command::Mix(plan) => peers::mix::run(&plan),
        Command::Connect(plan) => peers::connect::run(&plan),
        Command::Phase { task } => child::run(&task),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            progress::clear();
            eprintln!("dormouse-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
