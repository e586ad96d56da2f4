//! The dashboard and the alerts in `packaging/` ask for metrics that the server prints.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use dormouse_core::backend::Backend as _;
use dormouse_disk::engine::{Engine, Options as EngineOptions};
use serde_json::Value;

use crate::rig::Rig;

/// Printed only with a certificate, which this server has not.
const WITH_TLS: &str = "dormouse_tls_certificate_expires_timestamp_seconds";

fn packaging(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging")).join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(packaging(path)).unwrap()
}

/// Names of metrics in a text, as families.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let words = words.filter(|word| word.starts_with("dormouse_") || word.starts_with("process_"));
    words.map(|word| word.strip_suffix("_bucket").unwrap_or(word).to_owned()).collect()
}

/// All queries of the dashboard.
fn queries(dashboard: &Value, found: &mut Vec<String>) {
    match dashboard {
        Value::Object(fields) => {
            found.extend(fields.get("expr").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| queries(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| queries(item, found)),
        _ => {}
    }
}

/// Runs promtool, which has to find nothing.
fn promtool(directory: &Path, args: &[&str]) {
    let run = Command::new("promtool").args(args).current_dir(directory).output();
    let run = run.expect("promtool runs; `cargo xtask install` installs it");
    let said =
        format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "promtool {args:?}: {said}");
}

#[tokio::test]
async fn dashboard_and_alerts_name_metrics_that_are_printed() {
    let mut printed = Rig::start().await.metrics().await.families;
    let dir = tempfile::tempdir().unwrap();
    let on_disk = Engine::open(dir.path(), EngineOptions::default()).unwrap();
    printed.extend(on_disk.meters().iter().map(|meter| format!("dormouse_{}", meter.name)));
    let dashboard: Value = serde_json::from_str(&read("grafana/dormouse.json")).unwrap();
    let mut asked = Vec::new();
    queries(&dashboard, &mut asked);
    assert!(asked.len() > 40, "{}", asked.len());
    let rules = read("prometheus/dormouse.rules.yml");
    let expressions = rules.split("expr:").skip(1).map(|rest| {
        rest.split("\n        for:").next().unwrap().split("\n        labels:").next().unwrap()
    });
    asked.extend(expressions.map(str::to_owned));
    let named: BTreeSet<String> = asked.iter().flat_map(|query| names(query)).collect();
    assert!(named.len() > 35, "{named:?}");
    for name in named.iter().filter(|name| *name != WITH_TLS) {
        assert!(printed.contains(name), "{name} is not printed by a server");
    }
}

#[test]
fn the_alerts_are_valid_and_fire() {
    let directory = packaging("prometheus");
    promtool(&directory, &["check", "rules", "dormouse.rules.yml"]);
    promtool(&directory, &["test", "rules", "dormouse.rules.test.yml"]);
}

#[test]
fn the_queries_of_the_dashboard_are_valid() {
    let dashboard: Value = serde_json::from_str(&read("grafana/dormouse.json")).unwrap();
    let mut asked = Vec::new();
    queries(&dashboard, &mut asked);
    let mut rules = "groups:\n- name: dashboard\n  rules:\n".to_owned();
    for (number, query) in asked.iter().enumerate() {
        let query = query.replace("$__rate_interval", "5m");
        // JSON is YAML.
        let query = serde_json::to_string(&query).unwrap();
        writeln!(rules, "  - record: dashboard:{number}\n    expr: {query}").unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("dashboard.yml"), rules).unwrap();
    promtool(dir.path(), &["check", "rules", "dashboard.yml"]);
    // Panels do not overlap, and have numbers of their own.
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    let places: BTreeSet<String> = panels
        .iter()
        .map(|panel| format!("{} {}", panel["gridPos"]["x"], panel["gridPos"]["y"]))
        .collect();
    assert_eq!((ids.len(), places.len()), (panels.len(), panels.len()));
}
