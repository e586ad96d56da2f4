//! Limits: checked before anything is stored, with a text that helps.

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::backoff::{Backoff, Delays};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, State, Token};
use dormouse_core::limits::*;
use dormouse_core::machine::Output;
use dormouse_core::op::*;
use dormouse_core::topic::Settings;

use crate::support::*;

/// The error, which must name all of these.
#[test]
fn every_limit_of_put_names_field_value_limit_and_fix() {
    let base = || Put::new(topic("t"), "");
    let days_100y = DELAY_MS_MAX as i64;
    let far = (AT_MS_MAX + 1) as i64;
    let big = Bytes::from(vec![0; BODY_BYTES_MAX + 1]);
    let headers = |name: &str, value: &str| Some(Arc::new(vec![(name.into(), value.into())]));
    let list = |delays_ms| Some(Arc::new(Backoff::from(Delays::List { delays_ms })));
    let factor_0 = Backoff::from(Delays::Exponential { base_ms: 1, factor: 0, cap_ms: 1 });
    let cases: Vec<(Put, Code, &[&str])> = vec![
        (Put { delay_ms: Some(-1), ..base() }, Code::Invalid, &["delay", "-1", "give 0 to"]),
        (Put { delay_ms: Some(days_100y + 1), ..base() }, Code::Invalid, &["delay", "3162240000"]),
        (Put { at_ms: Some(-5), ..base() }, Code::Invalid, &["at", "-5"]),
        (Put { at_ms: Some(far), ..base() }, Code::Invalid, &["at", "is 3015-09-24T10:40:00.001Z"]),
        (Put { at_ms: Some(1), delay_ms: Some(1), ..base() }, Code::Invalid, &["both", "one of"]),
        (Put { ttr_ms: Some(0), ..base() }, Code::Invalid, &["ttr", "0 ms", "give 1 to"]),
        (Put { key_ttl_ms: Some(-1), ..base() }, Code::Invalid, &["key_ttl", "-1"]),
        (Put { key: Some(Bytes::new()), ..base() }, Code::Invalid, &["key", "0 bytes", "256"]),
        (
            Put { key: Some(Bytes::from(vec![1; 257])), ..base() },
            Code::Invalid,
            &["key", "257", "256"],
        ),
        (Put { headers: headers("", "x"), ..base() }, Code::Invalid, &["headers", "name"]),
        (
            Put { headers: headers("n", &"x".repeat(4_096)), ..base() },
            Code::Invalid,
            &["headers", "4097", "4096"],
        ),
        (Put { body: big, ..base() }, Code::TooLarge, &["body", "1048577", "1048576"]),
        (Put { backoff: list(vec![]), ..base() }, Code::Invalid, &["backoff", "0 entries", "64"]),
        (Put { backoff: list(vec![1; 65]), ..base() }, Code::Invalid, &["backoff", "65", "64"]),
        (Put { backoff: list(vec![u64::MAX]), ..base() }, Code::Invalid, &["backoff list entry"]),
        (Put { backoff: Some(Arc::new(factor_0)), ..base() }, Code::Invalid, &["factor", "1"]),
    ];
    let mut rig = Rig::new();
    for (put, code, words) in cases {
        says(&rig.try_put(put).unwrap_err(), code, words);
    }
    assert!(rig.facts.is_empty(), "nothing was stored");
    rig.put(Put { delay_ms: Some(days_100y), ..base() });
    rig.put(Put { key: Some(Bytes::from(vec![1; 256])), ..base() });
    rig.put(Put { headers: headers("n", &"x".repeat(4_095)), ..base() });
    rig.put(Put { body: Bytes::from(vec![0; BODY_BYTES_MAX]), ..base() });
}

#[test]
fn a_batch_too_long_is_refused_as_a_whole() {
    let mut rig = Rig::new();
    let puts = vec![Put::new(topic("t"), ""); BATCH_MAX + 1];
    says(&rig.run(Command::Put(puts)).unwrap_err(), Code::Invalid, &["4097", "4096"]);
    let token = Token { id: JobId(1), fence: 1 };
    let tokens = vec![token; BATCH_MAX + 1];
    assert_eq!(code(rig.run(Command::Ack(tokens))), Code::Invalid);
    let extends = vec![Extend { token, ttr_ms: None }; BATCH_MAX + 1];
    assert_eq!(code(rig.run(Command::Extend(extends))), Code::Invalid);
    assert!(rig.facts.is_empty());
}

#[test]
fn reserve_has_limits() {
    let mut rig = Rig::new();
    let mut refused = |reserve: Reserve, words: &[&str]| {
        says(&rig.run(Command::Reserve(reserve)).unwrap_err(), Code::Invalid, words);
    };
    refused(reserve(&[], 1, 0), &["0 topics", "1 to 1000"]);
    refused(reserve(&["t"; RESERVE_TOPICS_MAX + 1], 1, 0), &["1001 topics"]);
    refused(reserve(&["t"], 0, 0), &["max", "0", "4096"]);
    refused(reserve(&["t"], 4_097, 0), &["max", "4097"]);
    refused(reserve(&["t"], 1, 60_001), &["wait", "60001", "60000"]);
    refused(reserve(&["t"], 1, -1), &["wait", "-1"]);
    refused(Reserve { ttr_ms: Some(0), ..reserve(&["t"], 1, 0) }, &["ttr"]);
    let unknown = Reserve { session: Some(SessionId(9)), ..reserve(&["t"], 1, 0) };
    says(&rig.run(Command::Reserve(unknown)).unwrap_err(), Code::NotFound, &["session 9"]);
}

#[test]
fn the_rest_has_limits_too() {
    let mut rig = Rig::new();
    let mut refused = |command: Command, words: &[&str]| {
        says(&rig.run(command).unwrap_err(), Code::Invalid, words);
    };
    let list = |limit, cursor: Option<&str>, state| {
        let cursor = cursor.map(str::to_owned);
        Command::List(List { topic: topic("t"), state, cursor, limit, range: ListRange::default() })
    };
    refused(list(0, None, State::Ready), &["limit", "0", "1000"]);
    refused(list(1_001, None, State::Ready), &["limit", "1001"]);
    for cursor in ["", "x", "1.2", "1.2.3.4", "-1", "ffffffffffffffff.0.0", "200000000.0.1"] {
        refused(list(1, Some(cursor), State::Ready), &["cursor"]);
    }
    refused(list(1, Some("1.2.3"), State::Leased), &["cursor", "leased"]);
    refused(list(1, Some("1.2.3"), State::Dead), &["cursor", "dead"]);
    let forecast = |from_ms, to_ms, step_ms| {
        Command::Forecast(Forecast { topic: topic("t"), from_ms, to_ms, step_ms })
    };
    refused(forecast(0, 1_001, 1), &["1001 steps", "1000"]);
    refused(forecast(0, 10, 0), &["step"]);
    refused(forecast(10, 10, 1), &["from < to"]);
    let set = |settings| Command::from(SetTopic { topic: topic("t"), settings });
    refused(set(Settings { ttr_ms: Some(0), ..Settings::default() }), &["ttr"]);
    refused(set(Settings { dead_ttl_ms: Some(u64::MAX), ..Settings::default() }), &["dead_ttl"]);
    refused(Command::Pause(PauseTopic { topic: topic("t"), for_ms: Some(-1) }), &["pause", "-1"]);
    refused(Command::Topics(Topics { after: None, limit: 0 }), &["limit"]);
    assert!(rig.facts.is_empty());
}

/// Leases jobs of 1 MiB of a topic until that is refused; gives them and the refusal.
fn lease_all(rig: &mut Rig, name: &str) -> (Vec<LeasedJob>, Error) {
    let body = Bytes::from(vec![0; BODY_BYTES_MAX]);
    let mut taken = Vec::new();
    loop {
        rig.put(Put::new(topic(name), body.clone()));
        match rig.run(Command::Reserve(reserve(&[name], 1, 1_000))) {
            Ok(reply) => taken.append(&mut jobs(Ok(reply))),
            Err(error) => return (taken, error),
        }
    }
}

#[test]
fn leases_are_shared_by_topics() {
    let mut rig = Rig::new();
    let full = LEASED_BYTES_MAX as usize / BODY_BYTES_MAX;
    let (of_t, error) = lease_all(&mut rig, "t");
    assert_eq!(of_t.len(), full / 2, "whoever is alone has half");
    let share = ["topic t has 128 jobs of 134217728 bytes", "share", "268435456", "ack"];
    says(&error, Code::Busy, &share);
    let waiting = rig.state(JobId(of_t.len() as u64 + 1));
    assert_eq!(waiting, Some(State::Ready));
    // Others are not held up by a topic that has its share, not even in one request with it.
    let small = rig.put_now("u");
    assert_eq!(ids(&rig.reserve(&["t", "u"], 9)), [small.0]);
    let (of_u, error) = lease_all(&mut rig, "u");
    assert!(of_u.len().abs_diff(full / 4) <= 1, "{} leased", of_u.len());
    says(&error, Code::Busy, &["topic u has", "share"]);
    let by_id = |id| Command::ReserveId(ReserveId { id, ttr_ms: None, session: None });
    let error = rig.run(by_id(JobId(of_t.len() as u64 + 1))).unwrap_err();
    says(&error, Code::Busy, &share);
    // Leases are what shares are derived from, so a restart changes nothing.
    let facts = std::mem::take(&mut rig.facts);
    let mut again = Rig::new();
    facts.into_iter().for_each(|fact| again.machine.replay(fact));
    again.machine.recovered(again.now, &mut Output::default()).unwrap();
    let error = again.run(Command::Reserve(reserve(&["t"], 1, 0))).unwrap_err();
    says(&error, Code::Busy, &share);
    again.put_now("v");
    assert_eq!(again.reserve(&["v"], 1).len(), 1);
}

#[test]
fn too_much_leased_is_busy_and_goes_on_after_an_ack() {
    let mut rig = Rig::new();
    let (of_t, _) = lease_all(&mut rig, "t");
    let _ = lease_all(&mut rig, "u");
    let (_, error) = lease_all(&mut rig, "v");
    says(&error, Code::Busy, &["256 jobs", "268435456"]);
    assert!(rig.reserve(&["none"], 1).is_empty());
    rig.ack(of_t[0].token).unwrap();
    rig.put_now("w");
    assert_eq!(rig.reserve(&["w"], 1).len(), 1);
}

/// Leases that ran out take no room, and their tokens stay good: a consumer could once collect any
/// number of them, and take all back.
#[test]
fn a_lease_that_ran_out_goes_on_only_if_there_is_room() {
    let mut rig = Rig::new();
    // The others come first, so that nobody takes this one meanwhile.
    rig.put(Put { priority: Some(u32::MAX), ttr_ms: Some(10), ..Put::new(topic("t"), "last") });
    let lapsed = rig.take("t");
    rig.pass(10);
    let (taken, _) = lease_all(&mut rig, "t");
    let extend = || Command::Extend(vec![Extend { token: lapsed.token, ttr_ms: None }]);
    let Ok(Reply::Extended(replies)) = rig.run(extend()) else { panic!("no replies") };
    says(replies[0].as_ref().unwrap_err(), Code::Busy, &["topic t has", "share", "ack"]);
    rig.ack(taken[0].token).unwrap();
    rig.ack(taken[1].token).unwrap();
    let Ok(Reply::Extended(replies)) = rig.run(extend()) else { panic!("no replies") };
    assert!(replies[0].is_ok());
}

/// Each job that has a key of the batch is read: gigabytes, if all are large.
#[test]
fn a_batch_of_puts_reads_so_much_under_its_keys_and_no_more() {
    let mut rig = Rig::new();
    let count = PUT_KEYED_BYTES_MAX as usize / BODY_BYTES_MAX + 8;
    let keyed = |number: usize, body: Bytes| {
        let key = Some(bytes(&number.to_string()));
        Put { key, ..Put::new(topic("t"), body) }
    };
    let body = Bytes::from(vec![0; BODY_BYTES_MAX]);
    (0..count).for_each(|number| assert!(rig.try_put(keyed(number, body.clone())).is_ok()));
    let again = (0..count).map(|number| keyed(number, Bytes::new())).collect();
    let Ok(Reply::Put(replies)) = rig.run(Command::Put(again)) else { panic!("no replies") };
    let good = replies.iter().take_while(|reply| reply.is_ok()).count();
    assert!((count - 8..count).contains(&good), "{good} of {count}");
    let refused = &replies[good..];
    for reply in refused {
        says(reply.as_ref().unwrap_err(), Code::Busy, &["keys", "33554432", "fewer"]);
    }
    let last = rig.try_put(keyed(count - 1, Bytes::new())).unwrap();
    assert_eq!(last.outcome, PutOutcome::Duplicate);
}
