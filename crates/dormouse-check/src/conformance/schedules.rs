//! schedules: pages of a topic's schedules.

use super::prelude::*;

cases! { schedules:
    those_first_that_tick_first
    pages_end_and_leave_none_out
    by_their_state
    a_topic_without_any
    limit_out_of_range
    a_foreign_cursor_is_invalid
}

/// The names of all schedules in a state, in pages of this size.
fn names(s: &Subject, state: Option<ScheduleState>, limit: usize) -> Vec<String> {
    let (mut names, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = s.schedules(state, cursor, limit).expect("a page of schedules");
        assert!(page.schedules.len() <= limit, "{} of {limit}", page.schedules.len());
        names.extend(page.schedules.iter().map(|view| view.name.to_string()));
        cursor = page.cursor;
        pages += 1;
        assert!(pages < 1_000, "pages do not end");
        if cursor.is_none() {
            return names;
        }
    }
}

fn named(name: &str, span_ms: i64) -> PutSchedule {
    PutSchedule { name: schedule_name(name), ..every(span_ms) }
}

fn those_first_that_tick_first(s: &mut Subject) {
    for (name, span_ms) in [("c", 30_000), ("a", 10_000), ("b", 20_000)] {
        s.schedule(named(name, span_ms));
    }
    let mut all = names(s, None, 10);
    // Over several partitions the order is that of each.
    if all != ["a", "b", "c"] {
        all.sort();
    }
    assert_eq!(all, ["a", "b", "c"]);
}

fn pages_end_and_leave_none_out(s: &mut Subject) {
    let expected: Vec<String> = (0..40).map(|number| format!("n{number:02}")).collect();
    for (index, name) in expected.iter().enumerate() {
        // Many tick at the same instant, some by another clock.
        let span_ms = 100_000 + 10_000 * (index as i64 % 3);
        let put = if index % 4 == 0 { cron("0 0 1 1 *") } else { every(span_ms) };
        s.schedule(PutSchedule { name: schedule_name(name), ..put });
    }
    s.maybe_reopen();
    for limit in [1, 7, 40, 1_000] {
        let mut all = names(s, None, limit);
        all.sort();
        assert_eq!(all, expected, "pages of {limit}");
    }
}

fn by_their_state(s: &mut Subject) {
    s.schedule(every(10_000));
    s.schedule(named("r", 20_000));
    s.change(ScheduleChange::Pause { for_ms: None }).expect("paused");
    assert_eq!(names(s, Some(ScheduleState::Paused), 10), ["s"]);
    assert_eq!(names(s, Some(ScheduleState::Waiting), 10), ["r"]);
    assert_eq!(names(s, Some(ScheduleState::Busy), 10), [""; 0]);
}

fn a_topic_without_any(s: &mut Subject) {
    assert_eq!(names(s, None, 10), [""; 0]);
    s.put(job("t"));
    assert_eq!(names(s, None, 10), [""; 0]);
}

fn limit_out_of_range(s: &mut Subject) {
    refused(s.schedules(None, None, 0), Code::Invalid, &["limit"]);
    refused(s.schedules(None, None, limits::PAGE_MAX + 1), Code::Invalid, &["limit", "1000"]);
}

fn a_foreign_cursor_is_invalid(s: &mut Subject) {
    s.schedule(every(1_000));
    refused(s.schedules(None, Some("x".to_owned()), 10), Code::Invalid, &["cursor"]);
}
