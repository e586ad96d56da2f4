//! `dormouse config check`: the effective values and their sources.

use std::path::PathBuf;

use super::flags::Flags;
use super::merge::{Config, EffectiveValue};
use crate::Global;
use crate::exit::Failure;
use crate::output::{self, Output};

/// Validate the configuration and print the effective values with their sources
#[derive(clap::Args)]
#[command(after_help = "\
Takes the flags of `dormouse serve`, too. Exit code 2 if something is wrong.

Examples:
  dormouse config check /etc/dormouse.toml
  dormouse config check --config /etc/dormouse.toml --http 0.0.0.0:7788")]
pub(crate) struct Args {
    /// The TOML file; takes precedence over --config and DORMOUSE_CONFIG
    file: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
}

impl Args {
    pub(super) fn run(self, global: &Global) -> Result<(), Failure> {
        let config = Config::load(&self.flags.with_config(self.file))?;
        config.verify_exposures()?;
        config.settings.verify_certificate().map_err(Failure::usage)?;
        for warning in config.warnings() {
            output::say(&format!("warning: {warning}"));
        }
        match global.output {
            Output::Table => output::print(table(config.shown()).as_bytes()),
            Output::Json => output::print_line(&json(config.shown())),
        }
    }
}

fn table(shown: Vec<EffectiveValue>) -> String {
    let row = |shown: EffectiveValue| vec![shown.name, shown.value, shown.source.to_string()];
    let rows: Vec<Vec<String>> = shown.into_iter().map(row).collect();
    output::table(&["key", "value", "from"], &rows)
}

fn json(shown: Vec<EffectiveValue>) -> String {
    let entry = |shown: EffectiveValue| {
        serde_json::json!({
            "key": shown.name,
            "value": value(&shown.value),
            "from": shown.source.to_string(),
        })
    };
    let entries: Vec<serde_json::Value> = shown.into_iter().map(entry).collect();
    serde_json::json!({ "config": entries }).to_string()
}

/// A value of a file as JSON has it.
fn value(text: &str) -> serde_json::Value {
    let parsed = format!("value = {text}").parse::<toml::Table>().ok();
    let value = parsed.and_then(|table| serde_json::to_value(table.get("value")?).ok());
    value.unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_types_in_json() {
        let config = Config::merge(&Flags::of(&["--hosts", "a,b"]), &[]).unwrap();
        let json = json(config.shown());
        for part in [
            r#"{"from":"default","key":"data","value":"./dormouse-data"}"#,
            r#"{"from":"default","key":"connections_max","value":10000}"#,
            r#"{"from":"--hosts","key":"hosts","value":["a","b"]}"#,
        ] {
            assert!(json.contains(part), "{json}");
        }
        assert_eq!(value("(secret) put:*"), "(secret) put:*");
    }
}
