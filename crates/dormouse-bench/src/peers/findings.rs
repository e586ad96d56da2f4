//! Results: a table for people, figures for programs.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::contender::{Contender, Maker};
use crate::Result;
use crate::progress::note;
use crate::redis::table::short;
use crate::report::round;

#[derive(Default)]
pub(super) struct Findings {
    tables: Vec<String>,
    bars: Vec<Bar>,
    figures: Map<String, Value>,
    /// Contenders that could not take part in this phase.
    absent: Vec<Contender>,
    /// All that could not take part in any, and why.
    reasons: Vec<(Contender, String)>,
}

/// The bar, and the measured value.
struct Bar {
    name: String,
    bar: String,
    value: Option<f64>,
    is_met: bool,
    more: String,
}

impl Findings {
    /// A phase begins: everybody may try again.
    pub(super) fn begin(&mut self) {
        self.absent.clear();
    }

    /// Does something with a contender unless it was absent before; whether it was done. Peers must
    /// be there; this project's server may lack what is measured.
    pub(super) fn try_it(
        &mut self,
        contender: Contender,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        if self.is_absent(contender) {
            return Ok(false);
        }
        match work() {
            Ok(()) => Ok(true),
            Err(error) if contender.maker() == Maker::Dormouse => {
                note(&format!("absent: {}: {error}", contender.name()));
                self.absent.push(contender);
                let reason = (contender, error.to_string());
                if !self.reasons.contains(&reason) {
                    self.reasons.push(reason);
                }
                Ok(false)
            }
            Err(error) => Err(format!("{}: {error}", contender.name()).into()),
        }
    }

    pub(super) fn is_absent(&self, contender: Contender) -> bool {
        self.absent.contains(&contender)
    }

    /// A table: its title, its columns, its rows.
    pub(super) fn table(&mut self, title: &str, columns: &[&str], rows: &[Vec<String>]) {
        let mut text = format!("{title}\n\n| {} |\n|{}\n", columns.join(" | "), {
            "---|".repeat(columns.len())
        });
        for row in rows {
            // A String takes everything.
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        self.tables.push(text);
    }

    pub(super) fn figure(&mut self, name: String, value: impl Into<Value>) {
        let mut value = value.into();
        round(&mut value);
        self.figures.insert(name, value);
    }

    /// A figure that must not be below the bar.
    pub(super) fn at_least(&mut self, name: &str, bar: f64, value: Option<f64>, more: &str) {
        let is_met = value.is_some_and(|value| value >= bar);
        self.bar(name, format!(">= {bar}"), value, is_met, more);
    }

    /// A figure that must not be above the bar.
    pub(super) fn at_most(&mut self, name: &str, bar: f64, value: Option<f64>, more: &str) {
        let is_met = value.is_some_and(|value| value <= bar);
        self.bar(name, format!("<= {}", short(bar)), value, is_met, more);
    }

    fn bar(&mut self, name: &str, bar: String, value: Option<f64>, is_met: bool, more: &str) {
        let (name, more) = (name.to_owned(), more.to_owned());
        self.bars.push(Bar { name, bar, value, is_met, more });
    }

    pub(super) fn print(mut self) -> Result<()> {
        use std::io::Write;
        let rows: Vec<Vec<String>> = self.bars.iter().map(Bar::row).collect();
        self.table("Bars", &["measure", "bar", "value", "", "of"], &rows);
        let absent: Vec<Vec<String>> = self
            .reasons
            .iter()
            .map(|(contender, why)| vec![contender.name().to_owned(), why.clone()])
            .collect();
        if !absent.is_empty() {
            self.table("Absent", &["contender", "why"], &absent);
        }
        let bars: Vec<Value> = self.bars.iter().map(Bar::json).collect();
        self.figures.insert("bars".to_owned(), Value::Array(bars));
        let mut stdout = std::io::stdout().lock();
        for table in &self.tables {
            writeln!(stdout, "{table}")?;
        }
        writeln!(stdout, "{}", Value::Object(self.figures))?;
        Ok(stdout.flush()?)
    }
}

impl Bar {
    fn word(&self) -> &'static str {
        match self.value {
            None => "not measured",
            Some(_) if self.is_met => "ok",
            Some(_) => "missed",
        }
    }

    fn row(&self) -> Vec<String> {
        let value = self.value.map_or_else(String::new, short);
        let word = self.word().to_owned();
        vec![self.name.clone(), self.bar.clone(), value, word, self.more.clone()]
    }

    fn json(&self) -> Value {
        let mut value = Value::from(self.value);
        round(&mut value);
        serde_json::json!({
            "measure": self.name, "bar": self.bar, "value": value, "met": self.word(),
        })
    }
}
