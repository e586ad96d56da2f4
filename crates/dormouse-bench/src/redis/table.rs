//! The table for people: a measure, its bar, what was measured.

use std::fmt;

#[derive(Default)]
pub(super) struct Table(Vec<Row>);

struct Row {
    measure: String,
    bar: String,
    measured: String,
    /// `None` = there is no bar.
    met: Option<bool>,
}

impl Table {
    /// A line without a bar.
    pub(super) fn note(&mut self, measure: &str, measured: String) {
        let row = Row { measure: measure.to_owned(), bar: String::new(), measured, met: None };
        self.0.push(row);
    }

    /// A figure that must not be above the bar.
    pub(super) fn at_most(&mut self, measure: &str, bar: f64, value: f64, more: &str) {
        self.bounded(measure, format!("<= {bar}"), value <= bar, value, more);
    }

    /// A figure that must not be below the bar.
    pub(super) fn at_least(&mut self, measure: &str, bar: f64, value: f64, more: &str) {
        self.bounded(measure, format!(">= {bar}"), value >= bar, value, more);
    }

    fn bounded(&mut self, measure: &str, bar: String, met: bool, value: f64, more: &str) {
        let mut measured = short(value);
        if !more.is_empty() {
            measured = format!("{measured}; {more}");
        }
        self.0.push(Row { measure: measure.to_owned(), bar, measured, met: Some(met) });
    }
}

/// As many digits as mean something.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 1_000.0 => thousands(value.round() as i64),
        0.0 => "0".to_owned(),
        small if small < 1.0 => format!("{value:.3}"),
        _ => format!("{value:.2}"),
    }
}

fn thousands(value: i64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| measure | bar | measured | met |")?;
        writeln!(f, "|---|---|---|---|")?;
        for Row { measure, bar, measured, met } in &self.0 {
            let met = met.map_or("", |met| if met { "yes" } else { "NO" });
            writeln!(f, "| {measure} | {bar} | {measured} | {met} |")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        let shown = [0.0, 0.1234, 1.5, 1_234.5, 1_000_000.0].map(short);
        assert_eq!(shown, ["0", "0.123", "1.50", "1,235", "1,000,000"]);
    }
}
