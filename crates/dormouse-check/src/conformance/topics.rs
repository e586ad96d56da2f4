//! topics: which there are, and when they come and go.

use super::prelude::*;

cases! { topics:
    in_the_order_of_their_names
    pages
    come_with_the_first_put_or_setting
    a_refused_put_makes_none
    vanish_when_empty_unset_and_unwatched
    stay_while_leased_dead_held_set_paused_or_watched
    with_their_counts
    limit_out_of_range
}

fn names(s: &Subject) -> Vec<String> {
    let page = s.topics(None, 1_000).expect("a page");
    assert!(!page.more);
    page.topics.into_iter().map(|(name, _)| name.to_string()).collect()
}

fn in_the_order_of_their_names(s: &mut Subject) {
    s.put_many(["b", "a", "C", "a.b"].map(job));
    s.maybe_reopen();
    assert_eq!(names(s), ["C", "a", "a.b", "b"]);
}

fn pages(s: &mut Subject) {
    s.put_many((0..25).map(|n| job(&format!("t{n:02}"))));
    s.maybe_reopen();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = s.topics(after.as_deref(), 10).expect("a page");
        assert!(page.topics.len() <= 10);
        seen.extend(page.topics.into_iter().map(|(name, _)| name.to_string()));
        after = seen.last().cloned();
        if !page.more {
            break;
        }
    }
    assert!(seen.into_iter().eq((0..25).map(|n| format!("t{n:02}"))));
    assert_eq!(s.topics(Some("t24"), 10).expect("a page").topics, []);
    assert!(!s.topics(Some("t14"), 10).expect("a page").more, "just full is not more");
}

fn come_with_the_first_put_or_setting(s: &mut Subject) {
    assert_eq!(names(s), [""; 0]);
    s.put(delayed("a", 1_000));
    s.set_topic("b", Settings { ttr_ms: Some(5), ..Settings::default() });
    s.maybe_reopen();
    assert_eq!(names(s), ["a", "b"]);
    s.get(by_key("c", "k")).expect_err("no job");
    s.reserve("d", 1);
    s.set_topic("e", Settings::default());
    assert_eq!(names(s), ["a", "b"], "looking and unsetting make no topic");
}

fn a_refused_put_makes_none(s: &mut Subject) {
    s.try_put(delayed("mail", -1)).expect_err("a refusal");
    s.maybe_reopen();
    assert_eq!(names(s), [""; 0]);
}

fn vanish_when_empty_unset_and_unwatched(s: &mut Subject) {
    let id = s.put(job("mail"));
    s.set_topic("mail", Settings { ttr_ms: Some(5), ..Settings::default() });
    let waiting = s.park(wait_for("sms", 1_000));
    s.cancel(by_id(id)).expect("a cancel");
    s.advance(1_000);
    assert_eq!(waiting.jobs(), []);
    assert_eq!(names(s), ["mail"], "it is set");
    s.set_topic("mail", Settings::default());
    assert_eq!(names(s), [""; 0]);
    s.maybe_reopen();
    assert_eq!(names(s), [""; 0]);
    refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
    s.put(job("mail"));
    assert_eq!(names(s), ["mail"], "and comes again");
}

fn stay_while_leased_dead_held_set_paused_or_watched(s: &mut Subject) {
    s.put_many(["a-leased", "b-dead"].map(job));
    s.reserve_one("a-leased");
    let id = s.reserve_one("b-dead").token;
    s.kill(kill_held(id)).expect("a kill");
    s.put(Put { key_ttl_ms: Some(30_000), ..keyed("c-held", "k") });
    let token = s.reserve_one("c-held").token;
    s.ack(token).expect("an ack");
    s.pause("d-paused", Some(30_000));
    s.maybe_reopen();
    s.advance(29_999);
    s.barrier();
    assert_eq!(names(s), ["a-leased", "b-dead", "c-held", "d-paused"]);
    s.advance(1);
    s.barrier();
    assert_eq!(names(s), ["a-leased", "b-dead"], "hold and pause are over");
}

fn with_their_counts(s: &mut Subject) {
    s.put_many([job("a"), job("b"), job("b")]);
    s.maybe_reopen();
    let page = s.topics(None, 10).expect("a page");
    for (name, stats) in page.topics {
        assert_eq!(stats, s.stats(name.as_str()));
    }
}

fn limit_out_of_range(s: &mut Subject) {
    for limit in [0, limits::PAGE_MAX + 1] {
        refused(s.topics(None, limit), Code::Invalid, &["limit", &number(limit), "1 to 1000"]);
    }
}
