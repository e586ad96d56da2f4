//! chain: an ack that puts the jobs that come after, all or nothing.

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{State, Token};
use dormouse_core::limits::{BODY_BYTES_MAX, CHAIN_PUTS_MAX, PUT_KEYED_BYTES_MAX};
use dormouse_core::op::*;
use dormouse_core::topic::Settings;

use crate::support::*;

fn chain(rig: &mut Rig, token: Token, puts: Vec<Put>) -> Result<ChainReply, Error> {
    match rig.run(Command::Chain(Chain { token, puts }))? {
        Reply::Chain(reply) => Ok(reply),
        other => panic!("{other:?}"),
    }
}

/// Nothing of the chain was done.
fn check_refused(rig: &mut Rig, lease: &LeasedJob, puts: Vec<Put>, code: Code, words: &[&str]) {
    let facts = rig.facts.len();
    let error = chain(rig, lease.token, puts).unwrap_err();
    says(&error, code, words);
    assert_eq!(rig.facts.len(), facts, "{:?}", &rig.facts[facts..]);
    assert_eq!(rig.state(lease.id), Some(State::Leased));
}

#[test]
fn the_job_is_done_and_the_next_ones_are_there() {
    let mut rig = Rig::new();
    rig.put_now("t");
    let lease = rig.take("t");
    let puts = vec![
        Put { delay_ms: Some(5), ..Put::new(topic("t"), "again") },
        Put::new(topic("u"), "elsewhere"),
    ];
    let reply = chain(&mut rig, lease.token, puts).unwrap();
    assert_eq!(reply.end, EndReply::Done);
    let states: Vec<_> = reply.puts.iter().map(|put| put.state).collect();
    assert_eq!(states, [Some(State::Delayed), Some(State::Ready)]);
    assert_eq!(rig.state(lease.id), None);
    assert_eq!(rig.take("u").id, reply.puts[1].id);
}

#[test]
fn a_chain_that_is_sent_again_puts_nothing() {
    let mut rig = Rig::new();
    rig.put_now("t");
    let lease = rig.take("t");
    chain(&mut rig, lease.token, vec![Put::new(topic("u"), "")]).unwrap();
    let again = chain(&mut rig, lease.token, vec![Put::new(topic("u"), "")]).unwrap();
    assert_eq!(again, ChainReply { end: EndReply::Gone, puts: Vec::new() });
    assert_eq!(rig.stats("u").unwrap().counts.waiting, 1);
}

#[test]
fn who_lost_the_lease_puts_nothing() {
    let mut rig = Rig::new();
    rig.put_now("t");
    let lease = rig.take("t");
    rig.release(lease.token).unwrap();
    rig.take("t");
    let error = chain(&mut rig, lease.token, vec![Put::new(topic("u"), "")]).unwrap_err();
    assert_eq!(error.code, Code::LeaseLost);
    assert_eq!(code(rig.stats("u")), Code::NotFound);
}

#[test]
fn a_lease_that_ran_out_is_good_until_another_takes_the_job() {
    let mut rig = Rig::new();
    rig.put(Put { ttr_ms: Some(10), ..Put::new(topic("t"), "") });
    let lease = rig.take("t");
    rig.pass(20);
    let reply = chain(&mut rig, lease.token, vec![Put::new(topic("u"), "")]).unwrap();
    assert_eq!(reply.end, EndReply::Done);
}

#[test]
fn one_refused_put_refuses_everything() {
    let mut rig = Rig::new();
    rig.set("small", Settings { jobs_max: Some(1), ..Settings::default() });
    rig.put(Put { key: Some(bytes("k")), ..Put::new(topic("u"), "") });
    rig.put_now("t");
    let lease = rig.take("t");
    let good = || Put::new(topic("u"), "");
    let small = || Put::new(topic("small"), "");
    let wrong = Put { ttr_ms: Some(-1), ..good() };
    check_refused(&mut rig, &lease, vec![good(), wrong], Code::Invalid, &["put 2", "ttr"]);
    check_refused(&mut rig, &lease, vec![small(), small()], Code::Full, &["put 2", "small"]);
    let taken = Put { key: Some(bytes("k")), on_conflict: OnConflict::Reject, ..good() };
    check_refused(&mut rig, &lease, vec![taken], Code::Conflict, &["put 1"]);
    let keyed = Put { key: Some(bytes("twice")), ..good() };
    check_refused(&mut rig, &lease, vec![keyed.clone(), keyed], Code::Invalid, &["same key"]);
    check_refused(&mut rig, &lease, vec![], Code::Invalid, &["1 to"]);
    let many = vec![good(); CHAIN_PUTS_MAX + 1];
    check_refused(&mut rig, &lease, many, Code::Invalid, &["100"]);
}

#[test]
fn the_next_job_may_have_the_room_and_the_key_of_the_acked_one() {
    let mut rig = Rig::new();
    rig.set("t", Settings { jobs_max: Some(1), ..Settings::default() });
    let put = || Put { key: Some(bytes("k")), ..Put::new(topic("t"), "") };
    rig.put(put());
    for _ in 0..3 {
        let lease = rig.take("t");
        let reply = chain(&mut rig, lease.token, vec![put()]).unwrap();
        assert_eq!(reply.puts[0].outcome, PutOutcome::Created);
    }
}

#[test]
fn a_key_that_stays_taken_after_the_ack_is_told_as_a_duplicate() {
    let mut rig = Rig::new();
    let put = || Put { key: Some(bytes("k")), key_ttl_ms: Some(50), ..Put::new(topic("t"), "") };
    rig.put(put());
    let lease = rig.take("t");
    let reply = chain(&mut rig, lease.token, vec![put()]).unwrap();
    assert_eq!((reply.puts[0].outcome, reply.puts[0].id), (PutOutcome::Duplicate, lease.id));
    assert_eq!(rig.state(lease.id), None);
}

/// The room of the acked job was counted twice: as of one that goes, and of one that is replaced.
#[test]
fn a_job_that_waits_again_and_holds_its_key_makes_room_once() {
    let mut rig = Rig::new();
    rig.set("t", Settings { jobs_max: Some(1), ..Settings::default() });
    let put = || Put { key: Some(bytes("k")), key_ttl_ms: Some(50), ..Put::new(topic("t"), "") };
    rig.put(Put { ttr_ms: Some(10), ..put() });
    let lease = rig.take("t");
    rig.pass(10);
    let replace = Put { on_conflict: OnConflict::Replace, ..put() };
    let puts = vec![replace, Put::new(topic("t"), "")];
    let error = chain(&mut rig, lease.token, puts).unwrap_err();
    says(&error, Code::Full, &["put 2"]);
}

/// The done job was read in addition to those that the check had counted: one too many for the
/// limit, after the ack, and the store stopped.
#[test]
fn large_jobs_under_the_keys_of_a_chain_do_not_stop_the_store() {
    let mut rig = Rig::new();
    rig.set("t", Settings { keep_done_ms: Some(1_000), ..Settings::default() });
    let large = |key: String| Put {
        key: Some(key.into()),
        on_conflict: OnConflict::Replace,
        ..Put::new(topic("t"), vec![0; BODY_BYTES_MAX])
    };
    let id = rig.put(large("acked".to_owned()));
    let count = PUT_KEYED_BYTES_MAX as usize / BODY_BYTES_MAX;
    for number in 0..count {
        rig.put(large(number.to_string()));
    }
    let take = ReserveId { id, ttr_ms: None, session: None };
    let lease = jobs(rig.run(Command::ReserveId(take))).pop().unwrap();
    let small = |key: String| Put {
        key: Some(key.into()),
        on_conflict: OnConflict::Replace,
        ..Put::new(topic("t"), "")
    };
    let numbers = (0..count).map(|number| number.to_string());
    let puts: Vec<Put> = std::iter::once("acked".to_owned()).chain(numbers).map(small).collect();
    let reply = chain(&mut rig, lease.token, puts).unwrap();
    assert_eq!(reply.puts.len(), count + 1);
}
