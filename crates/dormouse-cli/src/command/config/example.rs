//! `dormouse config example`: a file with every option, its meaning and its default.

use super::keys::KEYS;
use super::settings::Settings;
use crate::exit::Failure;
use crate::output;

const HEAD: &str = "\
# Configuration of `dormouse serve`. Every value here is the default.
#
# The same options are flags and environment variables: connections_max is --connections-max and
# DORMOUSE_CONNECTIONS_MAX. A flag goes before the environment, which goes before this file.
# `dormouse config check FILE` prints the effective values and their sources.
";

const TAIL: &str = "
# For backend = \"redis\". Without partitions a topic has 1 on a single server, 8 on a cluster.
#[redis]
#url = \"redis://127.0.0.1:6379\"
#level = \"applied\"
#partitions = 8

# TLS for HTTP and RESP, not for beanstalk. The files are read again on SIGHUP.
#[tls]
#cert = \"/etc/dormouse/cert.pem\"
#key = \"/etc/dormouse/key.pem\"

# Deliveries of jobs to URLs; docs/push.md explains them. On disk the key is made if there is none.
#[push]
#on = true
#key = \"/etc/dormouse/push.key\"
#allow = [\"10.1.0.0/16\", \"host:hooks.internal\"]
#ports = [\"443\", \"8000-8999\"]
#ca_file = \"/etc/dormouse/ca.pem\"
#http = false
#connections_max = 1024

# Who may do what. Without any token everybody may do everything, on loopback addresses only.
# `dormouse config token` makes a token and its table; token_file names a file that holds the token
# instead. Tokens are read again on SIGHUP.
#
# A scope is <verbs>:<topics>. Verbs, with commas between: producer (put, get, cancel, reschedule),
# consumer (reserve, ack, nack, release, extend, kill, get), viewer (get, list, stats, forecast,
# events, metrics), operator (viewer and set_topic, pause, resume, purge, revive, kick, kill,
# cancel, reschedule, break_lock, inspect, push), admin or * (everything, also lock, backup and, on
# a server for tests, advance), or single verbs.
# Topics: a name, the beginning of names and a *, or * for all. For lock and break_lock, the lock's
# name stands for a topic.
#[[tokens]]
#name = \"shop\"
#token_sha256 = \"0000000000000000000000000000000000000000000000000000000000000000\"
#scopes = [\"producer:orders.*\", \"stats:*\"]
";

pub(super) fn run() -> Result<(), Failure> {
    output::print(text().as_bytes())
}

fn text() -> String {
    let defaults = Settings::default();
    let mut text = HEAD.to_owned();
    for key in KEYS.iter().filter(|key| !key.name.contains('.')) {
        text.push_str(&format!("\n# {}.\n", key.about));
        for line in key.more {
            text.push_str(&format!("# {line}\n"));
        }
        text.push_str(&format!("{} = {}\n", key.name, (key.show)(&defaults)));
    }
    text.push_str(TAIL);
    text
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::command::config::flags::Flags;
    use crate::command::config::merge::Config;

    fn parsed(text: &str) -> Config {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Config::merge(&Flags::of(&["--config", file.path().to_str().unwrap()]), &[]).unwrap()
    }

    #[test]
    fn the_example_is_the_defaults() {
        let config = parsed(&text());
        assert_eq!(config.settings, Settings::default());
        for shown in config.shown() {
            assert!(shown.source.to_string().contains(':'), "{} is missing", shown.name);
        }
        assert!(text().lines().all(|line| line.len() <= 100));
    }

    #[test]
    fn commented_examples_are_valid_too() {
        let uncomment = |line: &str| match line.strip_prefix('#') {
            Some(rest) if rest.starts_with(|c: char| c.is_alphabetic() || c == '[') => {
                rest.to_owned()
            }
            _ => line.to_owned(),
        };
        let lines: Vec<String> = text().lines().map(uncomment).collect();
        let contents =
            crate::command::config::file::parse("x".as_ref(), &lines.join("\n")).unwrap();
        let visible = KEYS.iter().filter(|key| !key.is_hidden()).count();
        assert_eq!(contents.values.len(), visible);
        assert_eq!(contents.tokens.len(), 1);
    }

    #[test]
    fn every_verb_of_a_scope_is_explained() {
        for verb in dormouse_server::access::Verb::ALL {
            assert!(TAIL.contains(verb.as_str()), "{verb}");
        }
    }
}
