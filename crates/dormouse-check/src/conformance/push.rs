//! set_push and get_push: what a topic keeps of its push, and what that does to its jobs.

use dormouse_core::topic::Push;

use super::prelude::*;

cases! { push:
    is_kept_beside_the_settings
    versions_grow_and_are_compared
    the_same_again_changes_nothing
    a_removed_one_comes_with_another_version
    a_topic_with_push_does_not_vanish
    concurrency_bounds_what_is_leased
    the_smaller_limit_counts
    jobs_have_the_backoff_of_pushes
    out_of_range
}

pub(super) fn new(record: &str, concurrency: u64) -> NewPush {
    NewPush { concurrency, is_disabled: false, record: bytes(record) }
}

fn set(push: Option<NewPush>, if_version: Option<u64>) -> SetPush {
    SetPush { topic: topic("mail"), push, if_version }
}

#[track_caller]
fn stored(s: &Subject) -> Push {
    (*s.push_of("mail").expect("an answer").expect("a push")).clone()
}

fn is_kept_beside_the_settings(s: &mut Subject) {
    assert_eq!(s.push_of("mail"), Ok(None));
    let push = NewPush { is_disabled: true, ..new("to there", 7) };
    let reply = s.try_push(set(Some(push.clone()), None)).expect("an answer").expect("a push");
    assert_eq!(*reply, push.numbered(reply.version));
    s.maybe_reopen();
    assert_eq!(stored(s), *reply);
    s.set_topic("mail", Settings { ttr_ms: Some(700), ..Settings::default() });
    s.set_topic("mail", Settings::default());
    s.maybe_reopen();
    assert_eq!(stored(s), *reply, "set_topic keeps it");
    s.purge("mail");
    assert_eq!(stored(s), *reply);
    assert_eq!(s.try_push(set(None, None)), Ok(None));
    s.maybe_reopen();
    assert_eq!(s.push_of("mail"), Ok(None));
    assert_eq!(s.try_push(set(None, None)), Ok(None), "a second time");
}

fn versions_grow_and_are_compared(s: &mut Subject) {
    let first = s.try_push(set(Some(new("a", 1)), Some(0))).expect("an answer").expect("a push");
    let again = s.try_push(set(Some(new("b", 1)), Some(0)));
    refused(again, Code::Conflict, &["mail", &first.version.to_string()]);
    let one = Some(first.version);
    let second = s.try_push(set(Some(new("b", 1)), one)).expect("an answer").expect("a push");
    assert!(second.version > first.version);
    s.maybe_reopen();
    let late = s.try_push(set(Some(new("c", 1)), one));
    refused(late, Code::Conflict, &["mail", &second.version.to_string()]);
    refused(s.try_push(set(None, one)), Code::Conflict, &["mail"]);
    assert_eq!(stored(s), *second);
    assert_eq!(s.try_push(set(None, Some(second.version))), Ok(None));
    refused(s.try_push(set(None, one)), Code::Conflict, &["mail", "no push"]);
}

fn the_same_again_changes_nothing(s: &mut Subject) {
    let first = s.try_push(set(Some(new("a", 1)), None)).expect("an answer");
    s.advance(10);
    let again = s.try_push(set(Some(new("a", 1)), None)).expect("an answer");
    assert_eq!(first, again, "with its version");
}

fn a_removed_one_comes_with_another_version(s: &mut Subject) {
    let first = s.try_push(set(Some(new("a", 1)), None)).expect("an answer").expect("a push");
    s.try_push(set(None, None)).expect("an answer");
    s.advance(10);
    s.maybe_reopen();
    let second = s.try_push(set(Some(new("a", 1)), None)).expect("an answer").expect("a push");
    assert!(second.version > first.version, "{} after {}", second.version, first.version);
}

fn a_topic_with_push_does_not_vanish(s: &mut Subject) {
    s.try_push(set(Some(new("a", 3)), None)).expect("an answer");
    s.advance(limits::TOPIC_LINGER_MS + 1);
    s.maybe_reopen();
    assert_eq!(s.stats("mail").settings.push.map(|push| push.concurrency), Some(3));
    s.try_push(set(None, None)).expect("an answer");
    refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
}

fn concurrency_bounds_what_is_leased(s: &mut Subject) {
    s.try_push(set(Some(new("a", 2)), None)).expect("an answer");
    s.put_many((0..4).map(|_| job("mail")));
    s.maybe_reopen();
    let leases = s.reserve("mail", 4);
    assert_eq!(leases.len(), 2);
    assert_eq!(s.reserve("mail", 4), []);
    s.ack(leases[0].token).expect("an ack");
    assert_eq!(s.reserve("mail", 4).len(), 1);
    s.try_push(set(None, None)).expect("an answer");
    assert_eq!(s.reserve("mail", 4).len(), 1, "without push there is no limit");
}

fn the_smaller_limit_counts(s: &mut Subject) {
    s.put_many((0..9).map(|_| job("mail")));
    s.set_topic("mail", Settings { leased_max: Some(2), ..Settings::default() });
    s.try_push(set(Some(new("a", 5)), None)).expect("an answer");
    assert_eq!(s.reserve("mail", 9).len(), 2);
    assert_eq!(s.stats("mail").settings.leased_max, Some(2), "it is shown as it was set");
    s.set_topic("mail", Settings { leased_max: Some(9), ..Settings::default() });
    assert_eq!(s.reserve("mail", 9).len(), 3);
}

fn jobs_have_the_backoff_of_pushes(s: &mut Subject) {
    s.try_push(set(Some(new("a", 2)), None)).expect("an answer");
    s.maybe_reopen();
    let content = |s: &Subject, put: Put| {
        let id = s.put(put);
        s.view(id).job.content
    };
    let plain = content(s, job("mail"));
    assert_eq!(plain.attempts_max, 12);
    let Delays::List { delays_ms } = &plain.backoff.expect("a backoff").delays else {
        panic!("no list");
    };
    assert_eq!((delays_ms.len(), delays_ms[0], delays_ms[10]), (11, 5_000, 86_400_000));
    let own = content(s, Put { attempts_max: Some(3), ..job("mail") });
    assert_eq!(own.attempts_max, 3);
    let backoff = Arc::new(Backoff::from(Delays::Fixed { delay_ms: 5 }));
    let settings = Settings { backoff: Some(Arc::clone(&backoff)), ..Settings::default() };
    s.set_topic("mail", settings);
    let set_so = content(s, job("mail"));
    assert_eq!(set_so.backoff, Some(backoff), "the topic's own counts");
    s.try_push(set(None, None)).expect("an answer");
    s.set_topic("mail", Settings::default());
    assert_eq!(content(s, job("mail")).backoff, None);
}

fn out_of_range(s: &mut Subject) {
    let too_large = "x".repeat(limits::PUSH_RECORD_BYTES_MAX + 1);
    for (push, code, word) in [
        (new("a", 0), Code::Invalid, "concurrency"),
        (new("a", 1_000_001), Code::Invalid, "1000000"),
        (new(&too_large, 1), Code::TooLarge, "65536"),
    ] {
        refused(s.try_push(set(Some(push), None)), code, &[word]);
    }
    assert_eq!(s.push_of("mail"), Ok(None));
    refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
}
