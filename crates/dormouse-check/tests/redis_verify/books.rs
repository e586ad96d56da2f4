//! Damage to numbers in the books of a partition: only they are set right.

use crate::site::{Site, check, is_clean};

/// Their places in the books; lua/lib.lua has all.
const LAST_NUMBER: usize = 0;
const LEASE_END: usize = 3;
const LAST_FENCE: usize = 4;
const BYTES: usize = 13;

/// No number in the books can be one of these.
const STRANGE: [f64; 5] = [f64::NAN, f64::INFINITY, -1.0, 0.5, 9_007_199_254_740_992.0];
const NEVER: f64 = 35_184_372_088_831.0;

/// Mends this number, and gives the one that it was set to; all others stay.
fn mended(site: &Site, index: usize, strange: f64) -> f64 {
    let before = site.books();
    site.write_book(index, strange);
    let report = check(&site.server.url(), true);
    let names: Vec<_> = report.problems.iter().map(|problem| problem.kind.name).collect();
    assert!(report.is_sound() && names.contains(&"books_unreadable"), "{strange}: {names:?}");
    is_clean(&check(&site.server.url(), false));
    let after = site.books();
    let mut expected = before;
    expected[index] = after[index];
    assert_eq!(after, expected, "number {index} was {strange}");
    after[index]
}

#[test]
fn a_bad_number_leaves_the_others_as_they_are() {
    let site = Site::new();
    for index in 0..14 {
        // So that nothing is 0 already, which is what counters are set to.
        if ![LAST_NUMBER, LEASE_END, LAST_FENCE, BYTES].contains(&index) {
            site.write_book(index, 1_000.0 + index as f64);
        }
    }
    let before = site.books();
    for (index, number) in before.into_iter().enumerate() {
        for strange in STRANGE {
            let after = mended(&site, index, strange);
            match index {
                // What jobs tell comes from them.
                LAST_NUMBER | LAST_FENCE | BYTES => assert_eq!(after, number, "{index}"),
                LEASE_END => assert!(after >= number && after < NEVER, "{after}"),
                _ => assert_eq!(after, 0.0, "{index}"),
            }
            site.write_book(index, number);
        }
    }
    site.delivers_all_but(&[]);
}

/// Ids have room for less than the books, and scores for less than that.
#[test]
fn a_number_that_has_no_room_where_it_goes() {
    let site = Site::new();
    let before = site.books();
    assert_eq!(mended(&site, LAST_NUMBER, 1_099_511_627_776.0), before[LAST_NUMBER]);
    for instant in 1..=3 {
        assert!(mended(&site, instant, NEVER + 1.0) < NEVER, "{instant}");
    }
    site.delivers_all_but(&[]);
}

#[test]
fn a_report_names_the_bad_numbers() {
    let site = Site::new();
    site.write_book(1, f64::NAN);
    site.write_book(BYTES, -5.0);
    let report = check(&site.server.url(), false);
    let mut told = report.problems.iter().map(|problem| (problem.kind.name, &*problem.detail));
    let found = told.find(|(kind, _)| *kind == "books_unreadable");
    assert_eq!(found, Some(("books_unreadable", "paused, bytes")));
}
