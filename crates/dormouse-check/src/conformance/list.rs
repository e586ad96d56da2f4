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
    waiting_jobs_by_due_whatever_their_priority
    jobs_of_a_range_of_time
    the_newest_of_the_dead_first
    pages_by_due_go_on_through_changes
    what_a_state_does_not_have_is_invalid
}

/// All ids of a state within a range, page by page.
fn ids_within(s: &Subject, state: State, range: ListRange, limit: usize) -> Vec<JobId> {
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let list = List { topic: topic("mail"), state, cursor, limit, range };
        let page = s.try_list(list).expect("a page");
        assert!(page.jobs.len() <= limit && page.jobs.iter().all(|view| view.state == state));
        ids.extend(page.jobs.iter().map(|view| view.job.id));
        cursor = page.cursor;
        if cursor.is_none() {
            return ids;
        }
    }
}

fn by_due() -> ListRange {
    ListRange { order: ListOrder::Due, ..ListRange::default() }
}

fn waiting_jobs_by_due_whatever_their_priority(s: &mut Subject) {
    let now = s.now() as i64;
    let puts = (0..40_u32).map(|number| {
        let (priority, due_ms) = (Some(number % 5), i64::from(1 + number * 7 % 40) * 10);
        match number % 2 {
            0 => Put { priority, ..delayed("mail", due_ms) },
            _ => Put { priority, at_ms: Some(now + due_ms), ..job("mail") },
        }
    });
    let ids = s.put_many(puts);
    s.maybe_reopen();
    let mut expected: Vec<usize> = (0..40).collect();
    expected.sort_by_key(|number| 1 + number * 7 % 40);
    let expected: Vec<JobId> = expected.into_iter().map(|number| ids[number]).collect();
    for limit in [1, 3, 7, 100] {
        assert_eq!(ids_within(s, State::Delayed, by_due(), limit), expected, "pages of {limit}");
    }
    s.advance(200);
    let (ready, delayed) = expected.split_at(20);
    assert_eq!(ids_within(s, State::Ready, by_due(), 7), ready);
    assert_eq!(ids_within(s, State::Delayed, by_due(), 7), delayed);
}

fn jobs_of_a_range_of_time(s: &mut Subject) {
    let begin = s.now();
    let at = |ms: u64| Put { at_ms: Some((begin + ms) as i64), ..job("mail") };
    let ids = s.put_many((1..=20).map(|number| at(number * 100)));
    s.maybe_reopen();
    let within = |from: Option<u64>, to: Option<u64>, order| ListRange {
        from_ms: from.map(|ms| begin + ms),
        to_ms: to.map(|ms| begin + ms),
        order,
    };
    for order in [ListOrder::Usual, ListOrder::Due] {
        let check = |from, to, expected: &[JobId]| {
            let mut found = ids_within(s, State::Delayed, within(from, to, order), 3);
            let mut expected = expected.to_vec();
            if order == ListOrder::Usual {
                // Where a topic has partitions they come one after the other.
                found.sort_unstable();
                expected.sort_unstable();
            }
            assert_eq!(found, expected, "{order:?} {from:?} {to:?}");
        };
        check(None, None, &ids);
        check(Some(500), None, &ids[4..]);
        check(Some(501), None, &ids[5..]);
        check(None, Some(500), &ids[..4]);
        check(Some(500), Some(501), &ids[4..5]);
        check(Some(500), Some(1_300), &ids[4..12]);
        check(Some(9_000), None, &[]);
        check(Some(800), Some(300), &[]);
    }
}

fn the_newest_of_the_dead_first(s: &mut Subject) {
    let ids = s.put_many((0..20).map(|_| job("mail")));
    let mut died_at = Vec::new();
    for (index, id) in ids.iter().enumerate() {
        s.kill(kill_resting(by_id(*id))).expect("a kill");
        died_at.push(s.now());
        if index % 3 == 2 {
            s.advance(5);
        }
    }
    s.maybe_reopen();
    let newest = ListRange { order: ListOrder::Newest, ..ListRange::default() };
    let mut deaths: Vec<(u64, JobId)> = died_at.iter().copied().zip(ids.iter().copied()).collect();
    deaths.sort_unstable();
    let expected: Vec<JobId> = deaths.iter().rev().map(|(_, id)| *id).collect();
    for limit in [1, 3, 7, 100] {
        assert_eq!(ids_within(s, State::Dead, newest, limit), expected, "pages of {limit}");
    }
    let since = ListRange { from_ms: Some(died_at[9]), ..newest };
    assert_eq!(ids_within(s, State::Dead, since, 4), &expected[..11]);
    let until = ListRange { to_ms: Some(died_at[9]), ..newest };
    assert_eq!(ids_within(s, State::Dead, until, 4), &expected[11..]);
    // Gaps where dead jobs were.
    for id in expected.iter().step_by(2) {
        s.cancel(by_id(*id)).expect("a cancel");
    }
    let rest: Vec<JobId> = expected.iter().skip(1).step_by(2).copied().collect();
    assert_eq!(ids_within(s, State::Dead, newest, 3), rest);
}

fn pages_by_due_go_on_through_changes(s: &mut Subject) {
    let puts = (1..=12).map(|number| Put {
        priority: Some(number % 3),
        ..delayed("mail", i64::from(number) * 100)
    });
    let ids = s.put_many(puts);
    let list = |cursor| List {
        topic: topic("mail"),
        state: State::Delayed,
        cursor,
        limit: 4,
        range: by_due(),
    };
    let first = s.try_list(list(None)).expect("a page");
    let seen: Vec<JobId> = first.jobs.iter().map(|view| view.job.id).collect();
    assert_eq!(seen, &ids[..4]);
    // The one that the next page begins with goes; so does one that was seen.
    s.cancel(by_id(ids[4])).expect("a cancel");
    s.cancel(by_id(ids[0])).expect("a cancel");
    s.maybe_reopen();
    let second = s.try_list(list(first.cursor)).expect("a page");
    let seen: Vec<JobId> = second.jobs.iter().map(|view| view.job.id).collect();
    assert_eq!(seen, &ids[5..9]);
}

fn what_a_state_does_not_have_is_invalid(s: &mut Subject) {
    let refused = |state, range| {
        let list = List { topic: topic("mail"), state, cursor: None, limit: 1, range };
        s.try_list(list).expect_err("refused").code
    };
    let newest = ListRange { order: ListOrder::Newest, ..ListRange::default() };
    let since = ListRange { from_ms: Some(s.now()), ..ListRange::default() };
    assert_eq!(refused(State::Dead, by_due()), Code::Invalid);
    assert_eq!(refused(State::Ready, newest), Code::Invalid);
    assert_eq!(refused(State::Leased, newest), Code::Invalid);
    assert_eq!(refused(State::Leased, since), Code::Invalid);
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
    List { topic: topic("mail"), state, cursor, limit, range: ListRange::default() }
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
