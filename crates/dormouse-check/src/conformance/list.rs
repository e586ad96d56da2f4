//! list: pages of jobs of a state, each job once.

use super::prelude::*;

cases! { list:
    waiting_jobs_by_priority_then_due
    delayed_and_ready_are_apart
    dead_jobs_by_age
    leased_jobs_by_id
    an_empty_or_missing_topic
    the_last_page_has_no_cursor
    pages_give_each_of_many_once
    pages_of_every_state
    pages_go_on_through_changes
    pages_go_on_through_restarts
    a_foreign_cursor_is_invalid
    limit_out_of_range
    changes_nothing
    a_page_is_bounded_in_bytes
    large_jobs_of_every_state_are_listed_once
}

fn waiting_jobs_by_priority_then_due(s: &mut Subject) {
    let with = |priority, delay_ms| Put { priority: Some(priority), ..delayed("mail", delay_ms) };
    let ids = s.put_many([with(5, 30), with(5, 10), with(1, 20), with(5, 10)]);
    s.maybe_reopen();
    let expected = [2, 1, 3, 0].map(|index: usize| ids[index]);
    assert_eq!(s.list_ids("mail", State::Delayed, 10), expected);
    s.advance(30);
    assert_eq!(s.list_ids("mail", State::Ready, 10), expected);
}

fn delayed_and_ready_are_apart(s: &mut Subject) {
    let ready = s.put_many((0..3).map(|_| job("mail")));
    let later = s.put_many((1..4).map(|delay_ms| delayed("mail", delay_ms * 10)));
    s.maybe_reopen();
    assert_eq!(s.list_ids("mail", State::Ready, 2), ready);
    assert_eq!(s.list_ids("mail", State::Delayed, 2), later);
    s.advance(10);
    assert_eq!(s.list_ids("mail", State::Ready, 2).len(), 4);
    assert_eq!(s.list_ids("mail", State::Delayed, 2), &later[1..]);
}

fn dead_jobs_by_age(s: &mut Subject) {
    let ids = s.put_many((0..4).map(|_| job("mail")));
    for index in [2, 0, 3, 1_usize] {
        s.kill(kill_resting(by_id(ids[index]))).expect("a kill");
        s.advance(1);
    }
    s.maybe_reopen();
    assert_eq!(s.list_ids("mail", State::Dead, 3), [2, 0, 3, 1_usize].map(|index| ids[index]));
}

fn leased_jobs_by_id(s: &mut Subject) {
    let ids = s.put_many((0..5).map(|n| Put { priority: Some(9 - n), ..job("mail") }));
    s.reserve("mail", 5);
    s.maybe_reopen();
    assert_eq!(s.list_ids("mail", State::Leased, 2), ids);
    let page = s.list("mail", State::Leased, None, 1);
    assert_eq!(page.jobs[0].due_at, s.now() + 60_000, "with the end of the lease");
}

fn an_empty_or_missing_topic(s: &mut Subject) {
    for state in [State::Delayed, State::Ready, State::Leased, State::Dead] {
        assert_eq!(s.list("mail", state, None, 10), Page { jobs: Vec::new(), cursor: None });
    }
}

fn the_last_page_has_no_cursor(s: &mut Subject) {
    s.put_many((0..4).map(|_| job("mail")));
    let first = s.list("mail", State::Ready, None, 2);
    assert_eq!(first.jobs.len(), 2);
    assert!(first.cursor.is_some());
    let second = s.list("mail", State::Ready, first.cursor, 2);
    assert_eq!((second.jobs.len(), second.cursor), (2, None));
    assert_eq!(s.list("mail", State::Ready, None, 4).cursor, None);
}

fn pages_give_each_of_many_once(s: &mut Subject) {
    let now = s.now() as i64;
    let put = |n: usize| match n % 3 {
        0 => Put { at_ms: Some(now + 1 + n as i64 % 50), ..job("mail") },
        priority => Put { priority: Some(priority as u32), ..delayed("mail", 1 + n as i64 % 50) },
    };
    let ids = s.put_many((0..MANY).map(put));
    s.maybe_reopen();
    for limit in [100, 333, limits::PAGE_MAX] {
        let mut listed = s.list_ids("mail", State::Delayed, limit);
        listed.sort_unstable();
        assert_eq!(listed, ids, "pages of {limit}");
    }
    s.advance(25);
    let (ready, later) =
        (s.list_ids("mail", State::Ready, 100), s.list_ids("mail", State::Delayed, 100));
    let mut all = [ready, later].concat();
    all.sort_unstable();
    assert_eq!(all, ids);
}

fn pages_of_every_state(s: &mut Subject) {
    let ids = s.put_many((0..90).map(|_| job("mail")));
    let kills = ids[..30].iter().map(|&id| kill_resting(by_id(id))).collect();
    s.ask(Command::Kill(kills)).expect("kills");
    s.reserve("mail", 30);
    s.maybe_reopen();
    for (state, ids) in
        [(State::Dead, &ids[..30]), (State::Leased, &ids[30..60]), (State::Ready, &ids[60..])]
    {
        assert_eq!(s.list_ids("mail", state, 7), ids, "{state}");
    }
}

fn pages_go_on_through_changes(s: &mut Subject) {
    let ids = s.put_many((0..100).map(|n| delayed("mail", 100 + n)));
    let first = s.list("mail", State::Delayed, None, 40);
    // The job the next page would begin with goes, and so does one that was listed.
    s.cancel(by_id(ids[40])).expect("a cancel");
    s.cancel(by_id(ids[3])).expect("a cancel");
    s.put(delayed("mail", 1));
    let second = s.list("mail", State::Delayed, first.cursor, 100);
    let listed: Vec<_> = second.jobs.iter().map(|view| view.job.id).collect();
    assert_eq!(listed, &ids[41..]);
}

fn pages_go_on_through_restarts(s: &mut Subject) {
    let ids = s.put_many((0..100).map(|n| delayed("mail", 100 + n)));
    let first = s.list("mail", State::Delayed, None, 40);
    s.maybe_reopen();
    let second = s.list("mail", State::Delayed, first.cursor, 100);
    let listed: Vec<_> = second.jobs.iter().map(|view| view.job.id).collect();
    assert_eq!(listed, &ids[40..]);
}

fn list_of(state: State, cursor: Option<String>, limit: usize) -> List {
    List { topic: topic("mail"), state, cursor, limit }
}

fn a_foreign_cursor_is_invalid(s: &mut Subject) {
    s.put_many((0..4).map(|_| job("mail")));
    let cursor = s.list("mail", State::Ready, None, 2).cursor;
    refused(s.try_list(list_of(State::Dead, cursor, 2)), Code::Invalid, &["cursor", "last page"]);
    let long = "f".repeat(10_000);
    for text in ["", "x", "1.2", "-1.0.0", "1.2.3.4", &long] {
        for state in [State::Ready, State::Dead] {
            let list = list_of(state, Some(text.to_owned()), 2);
            let error = refused(s.try_list(list), Code::Invalid, &["cursor", "last page"]);
            assert!(error.text.len() < 300, "a text people read");
        }
    }
}

fn limit_out_of_range(s: &mut Subject) {
    for limit in [0, limits::PAGE_MAX + 1, usize::MAX] {
        let words = ["limit", &number(limit), "1 to 1000", "cursor"];
        refused(s.try_list(list_of(State::Ready, None, limit)), Code::Invalid, &words);
    }
}

fn changes_nothing(s: &mut Subject) {
    s.put_many((0..4).map(|_| job("mail")));
    let before = s.stats("mail");
    s.list_ids("mail", State::Ready, 2);
    assert_eq!(s.stats("mail"), before);
    assert_eq!(s.reserve("mail", 10).len(), 4);
}

/// Jobs so large that few of them fill a reply, and one that is small.
fn put_large(s: &Subject, count: usize, delay_ms: i64) -> Vec<JobId> {
    let body = bytes::Bytes::from(vec![b'x'; limits::BODY_BYTES_MAX]);
    let large = || Put { body: body.clone(), ..delayed("mail", delay_ms) };
    // One at a time: a batch of them is more than some backend takes at once.
    let mut ids: Vec<JobId> = (0..count).map(|_| s.put(large())).collect();
    ids.push(s.put(delayed("mail", delay_ms)));
    ids
}

fn size_of(page: &Page) -> u64 {
    page.jobs.iter().map(|view| view.job.content.body.len() as u64).sum()
}

fn a_page_is_bounded_in_bytes(s: &mut Subject) {
    let ids = put_large(s, 34, 1_000);
    s.maybe_reopen();
    let (mut listed, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = s.list("mail", State::Delayed, cursor, limits::PAGE_MAX);
        assert!(size_of(&page) <= limits::REPLY_BYTES_MAX, "{} bytes", size_of(&page));
        assert!(!page.jobs.is_empty());
        listed.extend(page.jobs.iter().map(|view| view.job.id));
        pages += 1;
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((listed, pages), (ids, 3), "16 of 1 MiB fit");
    // A page that fits exactly is the last.
    let cursor = s.list("mail", State::Delayed, None, 18).cursor;
    let second = s.list("mail", State::Delayed, cursor, 16);
    assert_eq!((second.jobs.len(), second.cursor.is_some()), (16, true));
    let third = s.list("mail", State::Delayed, second.cursor, limits::PAGE_MAX);
    assert_eq!((third.jobs.len(), third.cursor), (3, None));
}

fn large_jobs_of_every_state_are_listed_once(s: &mut Subject) {
    let ids = put_large(s, 18, 0);
    s.maybe_reopen();
    assert_eq!(s.list_ids("mail", State::Ready, limits::PAGE_MAX), ids);
    let mut leases = s.reserve("mail", 18);
    leases.extend(s.reserve("mail", 18));
    assert_eq!(leases.len(), ids.len());
    s.maybe_reopen();
    let page = s.list("mail", State::Leased, None, limits::PAGE_MAX);
    assert_eq!((page.jobs.len(), page.cursor.is_some()), (16, true));
    assert_eq!(s.list_ids("mail", State::Leased, limits::PAGE_MAX), ids);
    assert_eq!(s.list_ids("mail", State::Leased, 2), ids);
    for lease in leases {
        s.kill(kill_held(lease.token)).expect("a kill");
    }
    s.maybe_reopen();
    assert_eq!(s.list_ids("mail", State::Dead, limits::PAGE_MAX), ids);
}
