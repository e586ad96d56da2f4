//! The measurements as a table or as JSON.

use serde_json::{Map, Value, json};

use super::late::LateFigures;
use super::load::{Done, Trouble};
use crate::output;

/// All figures so far.
#[derive(Default)]
pub(super) struct Report {
    /// The options of the run.
    pub(super) setup: Map<String, Value>,
    phases: Vec<Phase>,
    late: Map<String, Value>,
    pub(super) trouble: Trouble,
    pub(super) is_interrupted: bool,
}

/// One line of the table.
struct Phase {
    name: &'static str,
    what: String,
    done: Done,
}

impl Report {
    /// Adds a phase; its errors are added to all errors.
    pub(super) fn add(&mut self, name: &'static str, what: impl Into<String>, mut done: Done) {
        self.trouble.merge(std::mem::take(&mut done.trouble));
        self.phases.push(Phase { name, what: what.into(), done });
    }

    pub(super) fn add_late(&mut self, figures: LateFigures) {
        let LateFigures { done, server, early, missing } = figures;
        if early > 0 {
            self.trouble.add(format!("{early} jobs were handed out before their time"));
        }
        if missing > 0 {
            self.trouble.add(format!("{missing} jobs never came"));
        }
        self.late.insert("late_early".into(), json!(early));
        self.late.insert("late_missing".into(), json!(missing));
        let mut what = format!("due to answer; {early} early, {missing} missing");
        if let Some(server) = server {
            let (p50, p99, max) =
                (server.p50_us / 1_000, server.p99_us / 1_000, server.max_us / 1_000);
            self.late.insert("late_server_p50_ms".into(), json!(p50));
            self.late.insert("late_server_p99_ms".into(), json!(p99));
            self.late.insert("late_server_max_ms".into(), json!(max));
            what.push_str(&format!("; server: p99 {p99} ms, max {max} ms"));
        }
        self.add("late", what, done);
    }

    /// Whether the last phase got anything done.
    pub(super) fn is_hopeless(&self) -> bool {
        self.trouble.count > 0 && self.phases.last().is_none_or(|phase| phase.done.jobs == 0)
    }

    /// One flat object.
    pub(super) fn json(&self) -> String {
        let mut all = Map::new();
        all.insert("bench".into(), json!("http"));
        all.extend(self.setup.clone());
        for Phase { name, done, .. } in &self.phases {
            let mut add = |figure: &str, value| all.insert(format!("{name}_{figure}"), value);
            add("per_s", json!(done.per_s().round() as u64));
            add("jobs", json!(done.jobs));
            add("seconds", json!(rounded(done.seconds)));
            if let Some(spread) = done.spread {
                add("p50_us", json!(spread.p50_us));
                add("p99_us", json!(spread.p99_us));
                add("max_us", json!(spread.max_us));
            }
            if let Some(cores) = done.client_cores {
                add("client_cores", json!(rounded(cores)));
            }
        }
        all.extend(self.late.clone());
        all.insert("errors".into(), json!(self.trouble.count));
        if let Some(first) = &self.trouble.first {
            all.insert("first_error".into(), json!(first));
        }
        if self.is_interrupted {
            all.insert("interrupted".into(), json!(true));
        }
        Value::Object(all).to_string()
    }

    pub(super) fn table(&self) -> String {
        let header = ["phase", "jobs", "jobs/s", "p50 us", "p99 us", "max us", "client %", "what"];
        let row = |phase: &Phase| {
            let Done { jobs, spread, client_cores, .. } = phase.done;
            let time =
                |pick: fn(_) -> u64| spread.map(pick).map_or(String::new(), |us| us.to_string());
            vec![
                phase.name.to_owned(),
                jobs.to_string(),
                format!("{:.0}", phase.done.per_s()),
                time(|spread: super::times::Spread| spread.p50_us),
                time(|spread| spread.p99_us),
                time(|spread| spread.max_us),
                client_cores.map_or(String::new(), |cores| format!("{:.0}", cores * 100.0)),
                phase.what.clone(),
            ]
        };
        let rows: Vec<Vec<String>> = self.phases.iter().map(row).collect();
        output::table(&header, &rows)
    }
}

/// Three digits after the point: more would be noise.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::bench::times::Spread;

    fn report() -> Report {
        let spread = Some(Spread { p50_us: 2_000, p99_us: 5_000, max_us: 9_000 });
        let trouble = Trouble::default();
        let done = Done { jobs: 1_000, seconds: 0.5, spread, client_cores: Some(0.25), trouble };
        let mut report = Report::default();
        report.add("put", "one job per request", done.clone());
        report.add_late(LateFigures { done, server: spread, early: 0, missing: 0 });
        report
    }

    #[test]
    fn the_json_is_flat() {
        let document: Value = serde_json::from_str(&report().json()).unwrap();
        let expected = json!({
            "bench": "http", "put_per_s": 2_000, "put_jobs": 1_000, "put_seconds": 0.5,
            "put_p50_us": 2_000, "put_p99_us": 5_000, "put_max_us": 9_000,
            "put_client_cores": 0.25, "late_per_s": 2_000, "late_jobs": 1_000,
            "late_seconds": 0.5, "late_p50_us": 2_000, "late_p99_us": 5_000,
            "late_max_us": 9_000, "late_client_cores": 0.25, "late_early": 0, "late_missing": 0,
            "late_server_p50_ms": 2, "late_server_p99_ms": 5, "late_server_max_ms": 9,
            "errors": 0,
        });
        assert_eq!(document, expected);
    }

    #[test]
    fn the_table_has_a_line_per_phase() {
        let table = report().table();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("PHASE  JOBS  JOBS/S"), "{table}");
        assert!(lines[1].starts_with("put    1000    2000    2000    5000    9000"), "{table}");
        assert!(lines[2].ends_with("0 early, 0 missing; server: p99 5 ms, max 9 ms"), "{table}");
    }

    #[test]
    fn a_job_before_its_time_is_an_error() {
        let mut report = report();
        assert_eq!(report.trouble.count, 0);
        let done = Done::default();
        report.add_late(LateFigures { done, server: None, early: 2, missing: 1 });
        assert_eq!(report.trouble.count, 2);
        assert!(report.json().contains("2 jobs were handed out before their time"));
        assert!(report.is_hopeless());
    }
}
