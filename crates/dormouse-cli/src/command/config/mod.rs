//! `dormouse config`, and the configuration of the server: flags over environment over file over
//! defaults. One table (`keys`) has every option with its flag, its variable, and its line in the
//! example.

mod address;
mod check;
mod example;
mod file;
mod flags;
#[cfg(test)]
mod fuzz;
mod keys;
mod merge;
mod permissions;
mod raw;
mod settings;
mod token;
mod tokens;
mod values;

use std::fmt;

use clap::Subcommand;

use crate::Global;
use crate::exit::Failure;

pub(crate) use address::shown as beanstalk_shown;
pub(crate) use flags::Flags;
pub(crate) use merge::{Config, EffectiveValue, Source};
pub(crate) use permissions::exposure;
pub(crate) use settings::{BackendKind, Settings};
pub(crate) use values::ports;

/// Make, check and explain the server's configuration
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print a configuration file with every option, its meaning and its default
    Example,
    Check(check::Args),
    Token(token::Args),
}

impl Args {
    pub(crate) fn run(self, global: &Global) -> Result<(), Failure> {
        match self.command {
            Command::Example => example::run(),
            Command::Check(args) => args.run(global),
            Command::Token(args) => args.run(global),
        }
    }
}

/// An error in the configuration: the place, the mistake and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::usage(error.0)
    }
}
