//! `dormouse schedule`: rules that put a job at each of their ticks.

mod change;
mod ls;
mod preview;
mod put;

use clap::Subcommand;

use crate::Global;
use crate::client::encode;
use crate::exit::Failure;
use crate::target::topic_path;

/// Put jobs by a rule that repeats: every night at 03:00, each 5 minutes
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse schedule preview '0 3 * * 1-5' --zone Europe/Berlin
  dormouse schedule put reports nightly 'make it' --cron '0 3 * * *' --zone Europe/Berlin
  dormouse schedule ls reports
  dormouse schedule ls --prefix shop.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Preview(preview::Args),
    Put(Box<put::Args>),
    Ls(ls::Args),
    /// Show a schedule, its counts and its next ticks
    Get(change::ScheduleArgs),
    /// Remove a schedule; its jobs stay
    Rm(change::Remove),
    /// Give no ticks, and none of them later
    Pause(change::Pause),
    /// End a pause
    Resume(change::ScheduleArgs),
    /// Leave out the next tick
    Skip(change::ScheduleArgs),
    /// Let the next tick be the first after now, whatever was still to be given
    Replan(change::ScheduleArgs),
    /// Put a job now, or one for each tick of a time; the ticks go on as if nothing had happened
    Run(change::Run),
    /// Show the ticks of a schedule
    Next(change::Next),
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        match self.command {
            Command::Preview(args) => args.run(global).await,
            Command::Put(args) => args.run(global).await,
            Command::Ls(args) => args.run(global).await,
            Command::Get(named) => named.get(global).await,
            Command::Rm(args) => args.run(global).await,
            Command::Pause(args) => args.run(global).await,
            Command::Resume(named) => named.change(global, "resume").await,
            Command::Skip(named) => named.change(global, "skip").await,
            Command::Replan(named) => named.change(global, "replan").await,
            Command::Run(args) => args.run(global).await,
            Command::Next(args) => args.run(global).await,
        }
    }
}

/// The server is asked what a rule means: one that it refuses is wrong usage.
fn as_usage(failure: Failure) -> Failure {
    match failure.code() {
        Some("invalid") => Failure::usage(failure.text()),
        _ => failure,
    }
}

/// The path of a schedule.
fn path(topic: &str, name: &str) -> String {
    format!("{}/schedules/{}", topic_path(topic), encode(name))
}
