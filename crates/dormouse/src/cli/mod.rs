//! The command line: one file per subcommand, and the roles they share.

mod ack;
mod backup;
mod beanstalkd;
mod bench;
mod cancel;
mod change;
mod child;
mod client;
mod completions;
mod config;
mod count;
mod dead;
mod exit;
mod extend;
mod forecast;
mod get;
mod health;
mod hint;
mod job;
mod kick;
mod kill;
mod lock;
mod ls;
mod nack;
mod ndjson;
mod output;
mod pages;
mod pause;
mod place;
mod purge;
mod put;
mod release;
mod reschedule;
mod reserve;
mod resume;
mod revive;
mod run;
mod serve;
mod signals;
mod span;
mod stats;
mod tail;
mod tokens;
mod topic;
mod topics;
mod verify;
mod which;
mod work;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use client::Client;
use exit::Failure;
use output::Output;

/// Dormouse, a durable delay queue: put a job now, get it at its time.
#[derive(Parser)]
#[command(name = "dormouse", version, max_term_width = 100, after_help = AFTER_HELP)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Data goes to stdout, everything else to stderr.

Exit codes:
  0  done
  1  error
  2  wrong usage
  3  not found; also a reserve that got no job
  4  conflict: a taken key, a held lock, a lease that is lost, a job in another state
  5  the server cannot be reached, or did not answer
  6  busy, full or unavailable: try again later

Examples:
  dormouse serve --data ./dormouse-data
  dormouse put orders '{\"order\": 42}' --json --delay 30m --key 42
  dormouse work orders -- ./cancel-order.sh";

const CONFIG_HELP: &str = "\
Examples:
  dormouse config example > dormouse.toml
  dormouse config check --config dormouse.toml";

/// What every subcommand that talks to a server needs.
#[derive(clap::Args)]
pub(crate) struct Global {
    /// Where the server is
    #[arg(
        long,
        global = true,
        env = "DORMOUSE_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:7788",
        help_heading = "Server"
    )]
    pub(crate) url: String,
    /// The token that the server asks for
    #[arg(
        long,
        global = true,
        env = "DORMOUSE_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN",
        help_heading = "Server"
    )]
    pub(crate) token: Option<String>,
    /// Read the token from this file; goes before --token
    #[arg(
        long,
        global = true,
        env = "DORMOUSE_TOKEN_FILE",
        value_name = "FILE",
        help_heading = "Server"
    )]
    pub(crate) token_file: Option<std::path::PathBuf>,
    /// Trust the certificates in this file, not those that the system trusts
    #[arg(
        long,
        global = true,
        env = "DORMOUSE_CA_FILE",
        value_name = "FILE",
        help_heading = "Server"
    )]
    pub(crate) ca_file: Option<std::path::PathBuf>,
    /// How to print data: json is what the server answered
    #[arg(
        short,
        long,
        global = true,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    pub(crate) output: Output,
}

impl Global {
    /// A client of the server that the options name.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Client::new(self)
    }
}

#[derive(Subcommand)]
enum Command {
    Serve(serve::Args),
    Beanstalkd(beanstalkd::Args),
    Put(put::Args),
    Reserve(reserve::Args),
    Ack(ack::Args),
    Nack(nack::Args),
    Release(release::Args),
    Extend(extend::Args),
    Kill(kill::Args),
    Cancel(cancel::Args),
    Reschedule(reschedule::Args),
    Run(run::Args),
    Get(get::Args),
    Ls(ls::Args),
    Topics(topics::Args),
    Topic(topic::Args),
    Pause(pause::Args),
    Resume(resume::Args),
    Dead(dead::Args),
    Revive(revive::Args),
    Kick(kick::Args),
    Purge(purge::Args),
    Stats(stats::Args),
    Forecast(forecast::Args),
    Tail(tail::Args),
    Work(work::Args),
    Lock(lock::Args),
    Backup(backup::Args),
    Verify(verify::Args),
    Health(health::Args),
    Bench(bench::Args),
    #[command(after_help = CONFIG_HELP)]
    Config(config::Args),
    Completions(completions::Args),
}

impl Command {
    async fn run(self, global: &Global) -> Result<(), Failure> {
        match self {
            Self::Serve(args) => args.run().await,
            Self::Beanstalkd(args) => args.run().await,
            Self::Bench(args) => args.run(global).await,
            Self::Put(args) => args.run(global).await,
            Self::Reserve(args) => args.run(global).await,
            Self::Ack(args) => args.run(global).await,
            Self::Nack(args) => args.run(global).await,
            Self::Release(args) => args.run(global).await,
            Self::Extend(args) => args.run(global).await,
            Self::Kill(args) => args.run(global).await,
            Self::Cancel(args) => args.run(global).await,
            Self::Reschedule(args) => args.run(global).await,
            Self::Run(args) => args.run(global).await,
            Self::Get(args) => args.run(global).await,
            Self::Ls(args) => args.run(global).await,
            Self::Topics(args) => args.run(global).await,
            Self::Topic(args) => args.run(global).await,
            Self::Pause(args) => args.run(global).await,
            Self::Resume(args) => args.run(global).await,
            Self::Dead(args) => args.run(global).await,
            Self::Revive(args) => args.run(global).await,
            Self::Kick(args) => args.run(global).await,
            Self::Purge(args) => args.run(global).await,
            Self::Stats(args) => args.run(global).await,
            Self::Forecast(args) => args.run(global).await,
            Self::Tail(args) => args.run(global).await,
            Self::Work(args) => args.run(global).await,
            Self::Lock(args) => args.run(global).await,
            Self::Backup(args) => args.run(global).await,
            Self::Verify(args) => args.run(global),
            Self::Completions(args) => args.run(),
            Self::Health(args) => args.run(global).await,
            Self::Config(args) => args.run(global),
        }
    }

    /// Whether it needs more than the one thread that waits for answers.
    fn is_threaded(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Beanstalkd(_))
    }

    /// What must be done before there is a second thread.
    fn prepare(&self) -> Result<(), Failure> {
        match self {
            Self::Beanstalkd(args) => args.prepare(),
            _ => Ok(()),
        }
    }
}

/// All commands and their options.
fn tree() -> clap::Command {
    place::hide_idle(Cli::command())
}

/// Reads the arguments, runs the subcommand, says what failed.
pub(crate) fn main() -> ExitCode {
    let matches = match tree().try_get_matches_from(words()) {
        Ok(matches) => matches,
        Err(error) => hint::keep_likely(error).exit(),
    };
    let Cli { global, command } = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    if let Err(failure) = place::check(&matches).and_then(|()| command.prepare()) {
        return failure.report();
    }
    let mut builder = if command.is_threaded() {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::new(format!("cannot start: {error}")).report(),
    };
    let result = runtime.block_on(command.run(&global));
    // A read of stdin that nobody waits for any more must not keep the process.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The arguments; who calls the program `beanstalkd` means that subcommand.
fn words() -> Vec<OsString> {
    let mut words: Vec<_> = std::env::args_os().collect();
    let called = words.first().and_then(|word| Path::new(word).file_name());
    if called == Some(OsStr::new(beanstalkd::NAME)) {
        words.splice(..1, ["dormouse", beanstalkd::NAME].map(OsString::from));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_of_arguments_is_sound() {
        tree().debug_assert();
    }
}
