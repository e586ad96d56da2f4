//! The flags, made from the table of keys.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::keys::{KEYS, Key};
use super::merge::CONFIG_ENV;
use super::settings::Settings;

const CONFIG: &str = "config";
const HEADING: &str = "Configuration";

/// The values of the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    config: Option<PathBuf>,
    /// By the key's name.
    values: Vec<(&'static str, String)>,
}

impl Flags {
    pub(super) fn config(&self) -> Option<PathBuf> {
        self.config.clone()
    }

    /// The same with another file.
    pub(super) fn with_config(mut self, path: Option<PathBuf>) -> Flags {
        self.config = path.or(self.config);
        self
    }

    pub(super) fn value(&self, key: &Key) -> Option<String> {
        self.values.iter().find(|(name, _)| *name == key.name).map(|(_, value)| value.clone())
    }

    #[cfg(test)]
    pub(super) fn of(args: &[&str]) -> Flags {
        use clap::{Args as _, FromArgMatches as _};
        let command = Flags::augment_args(Command::new("x").no_binary_name(true));
        Flags::from_arg_matches(&command.try_get_matches_from(args).unwrap()).unwrap()
    }
}

fn arg(key: &Key) -> Arg {
    let default = (key.show)(&Settings::default()).replace('"', "");
    let default = match default.as_str() {
        "" | "[]" | "false" | "off" => String::new(),
        default => format!(" [default: {default}]"),
    };
    let help = format!("{} [env: {}]{default}", key.about, key.env());
    let arg = Arg::new(key.name).long(key.flag).help(help).help_heading(HEADING);
    let arg = arg.hide(key.is_hidden());
    let arg = match key.bare() {
        Some(value) => arg.num_args(0..=1).default_missing_value(value),
        None => arg,
    };
    if key.is_switch() {
        arg.require_equals(true).value_name("BOOL").hide_possible_values(true)
    } else {
        arg.value_name(key.value).action(ArgAction::Append)
    }
}

impl clap::Args for Flags {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new(CONFIG)
            .long(CONFIG)
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help(format!("Read options from this TOML file [env: {CONFIG_ENV}]"))
            .help_heading(HEADING);
        command.arg(config).args(KEYS.iter().map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Flags::augment_args(command)
    }
}

impl clap::FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Flags, clap::Error> {
        let mut flags = Flags::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.config = matches.get_one(CONFIG).cloned();
        for key in KEYS {
            let Some(values) = matches.get_many::<String>(key.name) else { continue };
            let values: Vec<&str> = values.map(String::as_str).collect();
            // Lists may be given bit by bit; of everything else the last one counts.
            let value = match key.name {
                "hosts" | "metrics_topics" => values.join(","),
                _ => values.last().copied().unwrap_or_default().to_owned(),
            };
            self.values.push((key.name, value));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_a_flag() {
        let check = |args: &[&str], name: &str, expected: Option<&str>| {
            let key = KEYS.iter().find(|key| key.name == name).unwrap();
            assert_eq!(Flags::of(args).value(key).as_deref(), expected, "{args:?}");
        };
        for key in KEYS.iter().filter(|key| !key.is_switch()) {
            check(&[&format!("--{}", key.flag), "x"], key.name, Some("x"));
            check(&[], key.name, None);
        }
        check(&["--insecure"], "insecure", Some("true"));
        check(&["--insecure=false"], "insecure", Some("false"));
        check(&["--beanstalk"], "beanstalk", Some("127.0.0.1:11300"));
        check(&["--beanstalk", "--insecure"], "beanstalk", Some("127.0.0.1:11300"));
        check(&["--beanstalk", "--beanstalk", "off"], "beanstalk", Some("off"));
        check(&["--hosts", "a", "--hosts", "b,c"], "hosts", Some("a,b,c"));
        check(&["--data", "a", "--data", "b"], "data", Some("b"));
    }
}
