//! Which subcommands use the global options: only those show and accept them.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use crate::command::beanstalkd;
use crate::exit::Failure;
use crate::output;

/// Options of subcommands that talk to a server.
const OF_CLIENTS: [&str; 4] = ["url", "token", "token_file", "ca_file"];
/// Subcommands that do not.
const LOCAL: [&str; 5] = ["serve", beanstalkd::NAME, "verify", "config", "completions"];
/// Those of them that have no output format.
const FORMLESS: [&str; 3] = ["serve", beanstalkd::NAME, "completions"];

/// Shows options only in the help of commands that use them.
pub(super) fn hide_unused(command: Command) -> Command {
    let hidden = |command: &Command, names: &[&str]| -> Vec<Arg> {
        let is_idle = |arg: &&Arg| names.contains(&arg.get_id().as_str());
        command.get_arguments().filter(is_idle).map(|arg| arg.clone().hide(true)).collect()
    };
    let (of_clients, output) = (hidden(&command, &OF_CLIENTS), hidden(&command, &["output"]));
    // A subcommand's own option takes precedence over the global one.
    LOCAL.into_iter().fold(command, |command, name| {
        let output = if FORMLESS.contains(&name) { output.clone() } else { Vec::new() };
        command.mut_subcommand(name, |command| command.args(of_clients.clone()).args(output))
    })
}

/// Refuses client options where there is no server to talk to: a token given to `serve` would
/// look as if the server required it. Variables in the environment may be meant for others.
pub(super) fn check(matches: &ArgMatches) -> Result<(), Failure> {
    let Some(name) = matches.subcommand_name().filter(|name| LOCAL.contains(name)) else {
        return Ok(());
    };
    let is_given = |option: &&str| matches.value_source(option) == Some(ValueSource::CommandLine);
    let Some(option) = OF_CLIENTS.into_iter().find(is_given) else { return Ok(()) };
    let option = option.replace('_', "-");
    let fix = if name == "serve" || name == beanstalkd::NAME {
        "see `dormouse config example`"
    } else {
        "leave it out"
    };
    let text = format!("--{option} is for commands that talk to a server, not for {name}; {fix}");
    Err(Failure::usage(text))
}

/// A program cannot hide its arguments from other users.
pub(super) fn warn(matches: &ArgMatches) {
    if matches.value_source("token") == Some(ValueSource::CommandLine) {
        output::say(
            "warning: --token shows the token to everybody who can list processes; use \
             --token-file or DORMOUSE_TOKEN",
        );
    }
}
