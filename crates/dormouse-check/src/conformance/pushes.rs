//! pushes: pages of the topics that are pushed.

use super::prelude::*;
use super::push::new;

cases! { pushes:
    pages_have_all_in_order
    nothing_is_listed_while_nothing_changes
    pages_are_bounded_in_bytes
    out_of_range
}

fn set(s: &Subject, name: &str, push: Option<NewPush>) {
    let set = SetPush { topic: topic(name), push, if_version: None };
    s.try_push(set).expect("an answer");
}

fn page(after: Option<&str>, limit: usize) -> Pushes {
    Pushes { after: after.map(topic), seen: None, limit }
}

fn names(page: &PushesPage) -> Vec<&str> {
    page.pushes.iter().map(|(name, _)| name.as_str()).collect()
}

fn pages_have_all_in_order(s: &mut Subject) {
    assert_eq!(s.pushes(page(None, 10)).expect("a page").pushes, []);
    for name in ["c", "a", "d", "b"] {
        set(s, name, Some(new(name, 1)));
    }
    s.put(job("aa"));
    set(s, "b", None);
    s.maybe_reopen();
    let first = s.pushes(page(None, 2)).expect("a page");
    assert_eq!((names(&first), first.more), (vec!["a", "c"], true));
    assert_eq!(first.pushes[1].1.record, bytes("c"));
    let last = s.pushes(page(Some("c"), 2)).expect("a page");
    assert_eq!((names(&last), last.more), (vec!["d"], false));
    let exact = s.pushes(page(None, 3)).expect("a page");
    assert_eq!((names(&exact), exact.more), (vec!["a", "c", "d"], false));
}

fn nothing_is_listed_while_nothing_changes(s: &mut Subject) {
    set(s, "a", Some(new("1", 1)));
    let seen = s.pushes(page(None, 10)).expect("a page").revision;
    let since = |s: &Subject, seen: u64| {
        s.pushes(Pushes { seen: Some(seen), ..page(None, 10) }).expect("a page")
    };
    let same = since(s, seen);
    assert_eq!((same.pushes.len(), same.revision), (0, seen));
    set(s, "a", Some(new("1", 1)));
    assert_eq!(since(s, seen).pushes.len(), 0, "the same again");
    set(s, "a", Some(new("2", 1)));
    let changed = since(s, seen);
    assert_eq!(changed.pushes.len(), 1);
    assert_ne!(changed.revision, seen);
    set(s, "a", None);
    let removed = since(s, changed.revision);
    assert_eq!(removed.pushes.len(), 0);
    assert_ne!(removed.revision, changed.revision);
}

fn pages_are_bounded_in_bytes(s: &mut Subject) {
    let large = "x".repeat(limits::PUSH_RECORD_BYTES_MAX);
    let count = 20;
    for number in 0..count {
        set(s, &format!("t{number:02}"), Some(new(&large, 1)));
    }
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let found = s.pushes(Pushes { after, seen: None, limit: 100 }).expect("a page");
        assert!(!found.pushes.is_empty() && found.pushes.len() < 20);
        after = found.pushes.last().map(|(name, _)| name.clone());
        all.extend(found.pushes);
        if !found.more {
            break;
        }
    }
    assert_eq!(all.len(), count);
}

fn out_of_range(s: &mut Subject) {
    refused(s.pushes(page(None, 0)), Code::Invalid, &["limit"]);
    refused(s.pushes(page(None, limits::PAGE_MAX + 1)), Code::Invalid, &["limit"]);
}
