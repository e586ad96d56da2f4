//! Damage to numbers in the header of a partition: only they are repaired.

use dormouse_core::op::Put;

use crate::installation::{Installation, TOPIC, check, is_clean, topic};

/// Their positions in the header; lua/lib.lua has all.
const LAST_NUMBER: usize = 0;
const LEASE_END: usize = 3;
const LAST_FENCE: usize = 4;
const BYTES: usize = 13;
const DEADLINE: usize = 14;

/// No number in the header can be one of these.
const STRANGE: [f64; 5] = [f64::NAN, f64::INFINITY, -1.0, 0.5, 9_007_199_254_740_992.0];
const NEVER: f64 = 35_184_372_088_831.0;
/// Job numbers are lower.
const NUMBERS: f64 = 1_099_511_627_776.0;

/// Mends this number, and gives the one that it was set to; all others stay.
fn mended(installation: &Installation, index: usize, strange: f64) -> f64 {
    let before = installation.header();
    installation.write_header_number(index, strange);
    let report = check(&installation.server.url(), true);
    let names: Vec<_> = report.problems.iter().map(|problem| problem.kind.name).collect();
    assert!(report.is_sound() && names.contains(&"books_unreadable"), "{strange}: {names:?}");
    is_clean(&check(&installation.server.url(), false));
    let after = installation.header();
    let mut expected = before;
    expected[index] = after[index];
    assert_eq!(after, expected, "number {index} was {strange}");
    after[index]
}

#[test]
fn a_bad_number_leaves_the_others_as_they_are() {
    let installation = Installation::new();
    for index in 0..14 {
        // So that nothing is 0 already, which is what counters are set to.
        if ![LAST_NUMBER, LEASE_END, LAST_FENCE, BYTES].contains(&index) {
            installation.write_header_number(index, 1_000.0 + index as f64);
        }
    }
    let before = installation.header();
    for (index, number) in before.into_iter().enumerate() {
        for strange in STRANGE {
            let after = mended(&installation, index, strange);
            match index {
                // Numbers that follow from the jobs.
                LAST_FENCE | BYTES => assert_eq!(after, number, "{index}"),
                // Jobs that are gone may have had greater ones: it begins at the time.
                LAST_NUMBER => assert!(after >= number && after < NUMBERS, "{after}"),
                LEASE_END => assert!(after >= number && after < NEVER, "{after}"),
                // No job has a deadline.
                DEADLINE => assert_eq!(after, NEVER),
                _ => assert_eq!(after, 0.0, "{index}"),
            }
            installation.write_header_number(index, number);
        }
    }
    installation.delivers_all_but(&[]);
}

/// Ids have room for less than the header, and scores for less than that.
#[test]
fn a_number_that_has_no_room_where_it_goes() {
    let installation = Installation::new();
    let before = installation.header();
    let number = mended(&installation, LAST_NUMBER, NUMBERS);
    assert!(number >= before[LAST_NUMBER] && number < NUMBERS, "{number}");
    for instant in 1..=3 {
        assert!(mended(&installation, instant, NEVER + 1.0) < NEVER, "{instant}");
    }
    installation.delivers_all_but(&[]);
}

#[test]
fn a_report_names_the_bad_numbers() {
    let installation = Installation::new();
    installation.write_header_number(1, f64::NAN);
    installation.write_header_number(BYTES, -5.0);
    let report = check(&installation.server.url(), false);
    let mut told = report.problems.iter().map(|problem| (problem.kind.name, &*problem.detail));
    let found = told.find(|(kind, _)| *kind == "books_unreadable");
    assert_eq!(found, Some(("books_unreadable", "paused, bytes")));
}

/// The next job has a greater id than any before it, also one that only a held key tells of.
fn the_next_id_is_new(damage: impl FnOnce(&Installation)) {
    let mut installation = Installation::new();
    let held = installation.hold("k3");
    damage(&installation);
    let report = check(&installation.server.url(), true);
    let names: Vec<_> = report.problems.iter().map(|problem| problem.kind.name).collect();
    assert!(report.is_sound() && names.contains(&"books_unreadable"), "{names:?}");
    // Servers go on as soon as the header can be read: the number must be right by then.
    assert!(!names.iter().any(|name| name.contains("number_low")), "{names:?}");
    installation.put(Put::new(topic(TOPIC), "next"));
    assert!(installation.ids["next"] > held, "{:?} after {held:?}", installation.ids["next"]);
    installation.delivers_all_but(&[]);
}

#[test]
fn a_number_that_was_none_is_that_of_a_held_key() {
    the_next_id_is_new(|installation| installation.write_header_number(LAST_NUMBER, f64::NAN));
}

#[test]
fn a_header_cut_short_knows_of_a_held_key() {
    the_next_id_is_new(|installation| {
        installation.on("HSET", "s", &[b"b", b"short"]);
    });
}

/// A job that gets an id of here must not get that of another, which has not been looked at yet.
#[test]
fn a_new_id_is_no_other_jobs() {
    let installation = Installation::new();
    let (id, foreign) = (installation.id("early"), 6_597_069_766_657_u64.to_be_bytes());
    let record = installation.on("HGET", "j", &[&id]).bytes().to_vec();
    installation.on("HDEL", "j", &[&id]);
    installation.on("HSET", "j", &[&foreign, &record]);
    installation.on("ZREM", "z7", &[&id]);
    installation.on("ZADD", "z7", &[b"5", &foreign]);
    let [.., number] = installation.id("plain0");
    installation.write_header_number(LAST_NUMBER, f64::from(number) - 1.0);
    let report = check(&installation.server.url(), true);
    assert!(report.is_sound() && report.found > 0, "{:#?}", report.problems);
    installation.delivers_all_but(&[]);
}
