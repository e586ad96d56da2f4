//! The tables of docs/schedules.md are true.

use super::{cron, ms};

const PAGE: &str = include_str!("../../../../../docs/schedules.md");

/// The rows of the table with this head, each without its backticks.
fn rows(head: &str) -> Vec<Vec<String>> {
    let mut lines = PAGE.lines().skip_while(|line| *line != head).skip(2);
    let row = |line: &str| -> Vec<String> {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    let rows: Vec<_> = lines.by_ref().take_while(|line| line.starts_with('|')).map(row).collect();
    assert!(rows.len() > 5, "no table {head}");
    rows
}

#[test]
fn expressions_mean_what_the_page_says() {
    for row in rows("| expression | in words |") {
        assert_eq!(cron(&row[0], "UTC").words(), format!("{}, UTC", row[1]), "{row:?}");
    }
}

#[test]
fn clocks_change_as_the_page_says() {
    for row in rows("| expression | zone | after | ticks |") {
        let cron = cron(&row[0], &row[1]);
        let mut at_ms = ms(&row[2]);
        for tick in row[3].split(", ") {
            at_ms = cron.next(at_ms).unwrap();
            assert_eq!(at_ms, ms(tick), "{row:?}");
        }
    }
}
