//! locks: pages of the locks that are held.

use super::prelude::*;

cases! { locks:
    held_ones_are_listed_with_their_holder
    free_ones_and_those_that_ran_out_are_not
    by_the_beginning_of_their_names
    pages_end_and_leave_none_out
    survive_a_restart
    limit_and_prefix_out_of_range
    a_foreign_cursor_is_invalid
}

/// All locks whose names begin so, by name, in pages of this size.
fn all(s: &Subject, prefix: &str, limit: usize) -> Vec<HeldLockView> {
    let (mut locks, mut cursor) = (Vec::new(), None);
    loop {
        let page = s.locks(prefix, cursor, limit).expect("a page of locks");
        assert!(page.locks.len() <= limit, "{} of {limit}", page.locks.len());
        locks.extend(page.locks);
        cursor = page.cursor;
        if cursor.is_none() {
            let place = |lock: &HeldLockView| (lock.expires_at, lock.name.clone());
            assert!(locks.is_sorted_by_key(place), "not in the order of their ends: {locks:?}");
            locks.sort_by(|one, other| one.name.cmp(&other.name));
            return locks;
        }
    }
}

fn names(s: &Subject, prefix: &str, limit: usize) -> Vec<String> {
    let text = |lock: &HeldLockView| String::from_utf8_lossy(&lock.name).into_owned();
    all(s, prefix, limit).iter().map(text).collect()
}

fn held_ones_are_listed_with_their_holder(s: &mut Subject) {
    assert_eq!(all(s, "", 10), []);
    s.lock("shop", "one", 10_000);
    let again = s.lock("shop", "one", 20_000);
    s.lock("mail", "two", 5_000);
    let locks = all(s, "", 10);
    assert_eq!(locks.len(), 2);
    let shop = &locks[1];
    assert_eq!((&shop.name[..], &shop.owner[..]), (&b"shop"[..], &b"one"[..]));
    assert_eq!((shop.fence, shop.depth), (again.fence, 2));
    assert_eq!(shop.expires_at, again.expires_at);
}

fn free_ones_and_those_that_ran_out_are_not(s: &mut Subject) {
    s.lock("a", "me", 1_000);
    s.lock("b", "me", 2_000);
    s.lock("c", "me", 3_000);
    assert_eq!(s.unlock("b", "me"), Ok(true));
    assert_eq!(names(s, "", 10), ["a", "c"]);
    s.advance(1_000);
    assert_eq!(names(s, "", 10), ["c"]);
}

fn by_the_beginning_of_their_names(s: &mut Subject) {
    for name in ["in.a", "in.b", "inn", "out.a", "*"] {
        s.lock(name, "me", 10_000);
    }
    assert_eq!(names(s, "in.", 10), ["in.a", "in.b"]);
    assert_eq!(names(s, "in", 1), ["in.a", "in.b", "inn"]);
    assert_eq!(names(s, "*", 10), ["*"]);
    assert_eq!(names(s, "none", 10), [""; 0]);
}

fn pages_end_and_leave_none_out(s: &mut Subject) {
    let expected: Vec<String> = (0..60).map(|number| format!("lock-{number:02}")).collect();
    for (index, name) in expected.iter().enumerate() {
        // Many end at the same instant.
        s.lock(name, "me", 10_000 + 1_000 * (index as i64 % 3));
    }
    for limit in [1, 7, 59, 60, 1_000] {
        assert_eq!(names(s, "", limit), expected, "pages of {limit}");
    }
}

fn survive_a_restart(s: &mut Subject) {
    s.lock("shop", "one", 10_000);
    s.maybe_reopen();
    assert_eq!(names(s, "", 10), ["shop"]);
}

fn limit_and_prefix_out_of_range(s: &mut Subject) {
    for limit in [0, limits::PAGE_MAX + 1] {
        refused(s.locks("", None, limit), Code::Invalid, &["limit", &number(limit), "1 to 1000"]);
    }
    let prefix = "x".repeat(limits::LOCK_NAME_BYTES_MAX + 1);
    refused(s.locks(&prefix, None, 10), Code::Invalid, &["prefix", "201", "200"]);
}

fn a_foreign_cursor_is_invalid(s: &mut Subject) {
    let long = format!("0.1.{}", "61".repeat(limits::LOCK_NAME_BYTES_MAX + 1));
    for cursor in ["", "1", "x.y.z", "0.1.a", "0.1.zz", "1.2.3.4", &long] {
        let page = s.locks("", Some(cursor.to_owned()), 10);
        refused(page, Code::Invalid, &["cursor", "locks"]);
    }
}
