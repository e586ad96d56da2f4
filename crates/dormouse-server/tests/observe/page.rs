//! Parses a page of metrics as a collector does.

use std::collections::{BTreeMap, BTreeSet};

/// Values by name and labels, as written on the page.
pub(crate) struct Page {
    /// Names of the metrics, as in a query.
    pub(crate) families: BTreeSet<String>,
    values: BTreeMap<String, f64>,
    text: String,
}

impl Page {
    /// Parses a page, and panics at what a collector would refuse.
    pub(crate) fn parse(text: &str) -> Page {
        let body = text.strip_suffix("# EOF\n").expect("the page has its end");
        let mut values = BTreeMap::new();
        let (mut families, mut names) = (BTreeSet::new(), BTreeSet::new());
        let mut family = String::new();
        for line in body.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                assert!(help.ends_with('.'), "{line}");
                continue;
            }
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                family = name.to_owned();
                names.insert(match kind {
                    "counter" => format!("{name}_total"),
                    "info" => format!("{name}_info"),
                    _ => family.clone(),
                });
                assert!(families.insert(family.clone()), "{family} is there twice");
                let is_ours = family.starts_with("dormouse_") || family.starts_with("process_");
                assert!(is_ours, "{line}");
                continue;
            }
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(series.starts_with(&family), "{line} in {family}");
            let before = values.insert(series.to_owned(), value.parse().unwrap());
            assert!(before.is_none(), "{series} is there twice");
        }
        Page { families: names, values, text: text.to_owned() }
    }

    /// The value of a series, written as on the page.
    pub(crate) fn get(&self, series: &str) -> Option<f64> {
        self.values.get(series).copied()
    }

    /// Checks that these series have these values.
    pub(crate) fn check(&self, expected: &[(&str, f64)]) {
        for (series, value) in expected {
            assert_eq!(self.get(series), Some(*value), "{series} in\n{}", self.text);
        }
    }

    /// All values of a label in a family.
    pub(crate) fn labels(&self, family: &str, label: &str) -> BTreeSet<String> {
        let start = format!("{family}{{");
        let series = self.values.keys().filter(|series| series.starts_with(&start));
        let value = |series: &String| {
            let (_, rest) = series.split_once(&format!("{label}=\""))?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        series.filter_map(value).collect()
    }

    /// The sum over all series of a family.
    pub(crate) fn sum(&self, family: &str) -> f64 {
        let start = format!("{family}{{");
        self.values.iter().filter(|(series, _)| series.starts_with(&start)).map(|(_, v)| v).sum()
    }
}
