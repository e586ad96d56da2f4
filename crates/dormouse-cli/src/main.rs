//! The binary `dormouse`: the server, and the command line that talks to one. `command/` has one
//! file per subcommand; the files beside it are the roles that subcommands share.

mod change;
mod child_process;
mod client;
mod command;
mod count;
mod exit;
mod job;
mod log_line;
mod ndjson;
mod option_scope;
mod output;
mod pages;
mod signals;
mod suggestions;
mod target;
mod tokens;
mod units;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use client::Client;
use command::{Command, beanstalkd};
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
  3  not found; also a reserve that returned no job
  4  conflict: a taken key, a held lock, a lost lease, a job in another state
  5  the server cannot be reached, or did not answer
  6  busy, full or unavailable: try again later

Examples:
  dormouse serve --data ./dormouse-data
  dormouse put orders '{\"order\": 42}' --json --delay 30m --key 42
  dormouse work orders -- ./cancel-order.sh";

/// The variables of the access token.
pub(crate) const TOKEN_ENV: &str = "DORMOUSE_TOKEN";
pub(crate) const TOKEN_FILE_ENV: &str = "DORMOUSE_TOKEN_FILE";

/// Options of every subcommand that talks to a server.
#[derive(clap::Args)]
pub(crate) struct Global {
    /// The server's address
    #[arg(
        long,
        global = true,
        env = "DORMOUSE_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:7788",
        help_heading = "Server"
    )]
    pub(crate) url: String,
    /// The access token; as an option, other users see it in the list of processes
    #[arg(
        long,
        global = true,
        env = TOKEN_ENV,
        hide_env_values = true,
        value_name = "TOKEN",
        help_heading = "Server"
    )]
    pub(crate) token: Option<String>,
    /// Read the token from this file; takes precedence over --token
    #[arg(
        long,
        global = true,
        env = TOKEN_FILE_ENV,
        value_name = "FILE",
        help_heading = "Server"
    )]
    pub(crate) token_file: Option<std::path::PathBuf>,
    /// Trust the certificates in this PEM file instead of the system's
    #[arg(
        long,
        global = true,
        env = "DORMOUSE_CA_FILE",
        value_name = "FILE",
        help_heading = "Server"
    )]
    pub(crate) ca_file: Option<std::path::PathBuf>,
    /// How to print data: json is the server's reply
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

    /// The token, or its file, as variables for a command that may have it.
    pub(crate) fn token_variables(&self) -> Vec<(String, String)> {
        let file = self.token_file.as_ref().map(|path| path.to_string_lossy().into_owned());
        let values = [(TOKEN_ENV, self.token.clone()), (TOKEN_FILE_ENV, file)];
        values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// All commands and their options.
fn tree() -> clap::Command {
    option_scope::hide_unused(Cli::command())
}

/// Reads the arguments, runs the subcommand, reports its failure.
fn main() -> ExitCode {
    let matches = match tree().try_get_matches_from(words()) {
        Ok(matches) => matches,
        Err(error) => suggestions::keep_likely(error).exit(),
    };
    let Cli { global, command } = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    if let Err(failure) = option_scope::check(&matches).and_then(|()| command.prepare()) {
        return failure.report();
    }
    option_scope::warn(&matches);
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
    // A blocked read of stdin must not keep the process alive.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The arguments; a program called `beanstalkd` runs that subcommand.
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
