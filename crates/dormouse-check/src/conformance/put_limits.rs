//! put: every limit, at it and beyond it; what is refused is not stored.

use dormouse_core::op::check::rfc3339;

use super::prelude::*;

cases! { put_limits:
    delay_and_at_together
    a_delay_below_zero
    a_delay_over_a_hundred_years
    an_at_before_1970
    an_at_beyond_the_calendar
    a_body_at_its_limit
    a_body_over_its_limit
    a_topic_name_at_its_limit
    topic_names_beyond_the_rules
    a_key_at_its_limit
    keys_beyond_their_limit
    keys_of_the_server
    headers_at_their_limit
    headers_over_their_limit
    a_header_without_a_name
    a_ttr_out_of_range
    a_key_ttl_out_of_range
    backoffs_out_of_range
    no_limit_of_attempts
}

/// Refused with this code and these words, and nothing is stored.
#[track_caller]
fn check(s: &mut Subject, put: Put, code: Code, words: &[&str]) {
    let name = put.topic.to_string();
    refused(s.try_put(put), code, words);
    s.maybe_reopen();
    refused(s.try_stats(&name), Code::NotFound, &[&name]);
}

fn delay_and_at_together(s: &mut Subject) {
    let at_ms = s.now() as i64;
    let put = Put { delay_ms: Some(5), at_ms: Some(at_ms), ..job("mail") };
    check(s, put, Code::Invalid, &["delay", "at", "5", &number(at_ms), "one of them"]);
}

fn a_delay_below_zero(s: &mut Subject) {
    let limit = number(limits::DELAY_MS_MAX);
    check(s, delayed("mail", -1), Code::Invalid, &["delay", "-1", &limit, "give"]);
    check(s, delayed("mail", i64::MIN), Code::Invalid, &["delay", &limit, "give"]);
}

fn a_delay_over_a_hundred_years(s: &mut Subject) {
    let limit = number(limits::DELAY_MS_MAX);
    let over = limits::DELAY_MS_MAX as i64 + 1;
    check(s, delayed("mail", over), Code::Invalid, &["delay", &number(over), &limit, "give"]);
    check(s, delayed("mail", i64::MAX), Code::Invalid, &["delay", &limit, "give"]);
    s.put(delayed("mail", limits::DELAY_MS_MAX as i64));
}

fn an_at_before_1970(s: &mut Subject) {
    let put = Put { at_ms: Some(-1), ..job("mail") };
    check(s, put, Code::Invalid, &["at", "-1", &rfc3339(limits::AT_MS_MAX), "give"]);
}

fn an_at_beyond_the_calendar(s: &mut Subject) {
    let limit = rfc3339(limits::AT_MS_MAX);
    let put = Put { at_ms: Some(limits::AT_MS_MAX as i64 + 1), ..job("mail") };
    check(s, put, Code::Invalid, &["at", &limit, "give"]);
    s.put(Put { at_ms: Some(limits::AT_MS_MAX as i64), ..job("mail") });
}

fn a_body_at_its_limit(s: &mut Subject) {
    let body: Vec<u8> = (0..limits::BODY_BYTES_MAX).map(|n| (n % 251) as u8).collect();
    s.put(Put::new(topic("mail"), body.clone()));
    s.maybe_reopen();
    assert_eq!(s.reserve_one("mail").body, body);
}

fn a_body_over_its_limit(s: &mut Subject) {
    let put = Put::new(topic("mail"), vec![0; limits::BODY_BYTES_MAX + 1]);
    check(s, put, Code::TooLarge, &["body", "1048577", "1048576", "give at most"]);
}

fn a_topic_name_at_its_limit(s: &mut Subject) {
    let name = "t".repeat(limits::TOPIC_BYTES_MAX);
    let id = s.put(job(&name));
    s.put(job("A-Za+z/0;9.$_():"));
    s.maybe_reopen();
    assert_eq!(s.reserve_one(&name).id, id);
    assert_eq!(s.stats("A-Za+z/0;9.$_():").ready, 1);
}

fn topic_names_beyond_the_rules(_: &mut Subject) {
    // A name is checked where it is made, so no backend ever sees another.
    refused(TopicName::new(""), Code::Invalid, &["topic", "0 bytes", "1 to 200"]);
    refused(TopicName::new(&"t".repeat(201)), Code::Invalid, &["topic", "201", "1 to 200"]);
    for name in ["-mail", "ma il", "mail\n", "ma\u{e9}l", "a{b}", "a%b", "a*"] {
        refused(TopicName::new(name), Code::Invalid, &["topic", "A-Z", "only"]);
    }
}

fn a_key_at_its_limit(s: &mut Subject) {
    let key = "k".repeat(limits::KEY_BYTES_MAX);
    let id = s.put(keyed("mail", &key));
    s.maybe_reopen();
    assert_eq!(s.get(by_key("mail", &key)).expect("the job of the key").job.id, id);
}

fn keys_beyond_their_limit(s: &mut Subject) {
    check(s, keyed("mail", ""), Code::Invalid, &["key", "0 bytes", "1 to 256"]);
    let put = keyed("mail", &"k".repeat(limits::KEY_BYTES_MAX + 1));
    check(s, put, Code::Invalid, &["key", "257", "1 to 256"]);
}

fn with_headers(name: usize, value: usize) -> Put {
    Put { headers: Some(Arc::new(vec![("n".repeat(name), "v".repeat(value))])), ..job("mail") }
}

fn keys_of_the_server(s: &mut Subject) {
    for key in ["dormouse:", "dormouse:dead:1"] {
        check(s, keyed("mail", key), Code::Invalid, &["keys", "dormouse:", "put something before"]);
    }
    s.put(keyed("mail", "dormouse"));
}

fn headers_at_their_limit(s: &mut Subject) {
    let put = with_headers(96, 4_000);
    s.put(put.clone());
    s.maybe_reopen();
    assert_eq!(s.reserve_one("mail").headers, put.headers);
}

fn headers_over_their_limit(s: &mut Subject) {
    check(s, with_headers(96, 4_001), Code::Invalid, &["headers", "4097", "4096", "give"]);
}

fn a_header_without_a_name(s: &mut Subject) {
    check(s, with_headers(0, 3), Code::Invalid, &["headers", "name", "give"]);
}

fn a_ttr_out_of_range(s: &mut Subject) {
    let limit = number(limits::TTL_MS_MAX);
    for ttr_ms in [0, -5, limits::TTL_MS_MAX as i64 + 1] {
        let put = Put { ttr_ms: Some(ttr_ms), ..job("mail") };
        check(s, put, Code::Invalid, &["ttr", &number(ttr_ms), &limit, "give 1 to"]);
    }
}

fn a_key_ttl_out_of_range(s: &mut Subject) {
    let limit = number(limits::TTL_MS_MAX);
    for key_ttl_ms in [-1, limits::TTL_MS_MAX as i64 + 1] {
        let put = Put { key_ttl_ms: Some(key_ttl_ms), ..keyed("mail", "k") };
        check(s, put, Code::Invalid, &["key_ttl", &number(key_ttl_ms), &limit, "give"]);
    }
}

fn backoffs_out_of_range(s: &mut Subject) {
    let over = limits::DELAY_MS_MAX + 1;
    let entries = limits::BACKOFF_LIST_MAX;
    let bad = [
        (Backoff::from(Delays::Fixed { delay_ms: over }), number(over)),
        (Backoff::from(Delays::Fixed { delay_ms: 1 }).with_jitter(1.5), "0 to 1".to_owned()),
        (
            Backoff::from(Delays::Exponential { base_ms: 1, factor: 0, cap_ms: 1 }),
            "factor".to_owned(),
        ),
        (
            Backoff::from(Delays::Exponential { base_ms: over, factor: 2, cap_ms: 1 }),
            "base".to_owned(),
        ),
        (
            Backoff::from(Delays::Exponential { base_ms: 1, factor: 2, cap_ms: over }),
            "cap".to_owned(),
        ),
        (Backoff::from(Delays::List { delays_ms: Vec::new() }), format!("1 to {entries}")),
        (
            Backoff::from(Delays::List { delays_ms: vec![1; entries + 1] }),
            format!("1 to {entries}"),
        ),
        (Backoff::from(Delays::List { delays_ms: vec![1, over] }), number(over)),
    ];
    for (backoff, word) in bad {
        let put = Put { backoff: Some(Arc::new(backoff)), ..job("mail") };
        check(s, put, Code::Invalid, &["backoff", &word, "give"]);
    }
}

fn no_limit_of_attempts(s: &mut Subject) {
    let id = s.put(Put { attempts_max: Some(0), ..job("mail") });
    for attempt in 1..=30 {
        let got = s.reserve_one("mail");
        assert_eq!(got.attempt, attempt);
        let nack = Nack { delay_ms: Some(0), ..failed(got.token) };
        assert_eq!(s.nack(nack), Ok(EndReply::Retry { due_at: s.now() }));
    }
    assert_eq!(s.state(id), State::Ready);
}
