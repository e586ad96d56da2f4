//! dead_topic: a job that dies goes on in another topic.

use std::sync::Arc;

use dormouse_core::command::Command;
use dormouse_core::error::Code;
use dormouse_core::job::{JobId, State};
use dormouse_core::op::*;
use dormouse_core::topic::Settings;

use crate::support::*;

fn with_dead_topic(name: &str) -> Settings {
    Settings { dead_topic: Some(topic(name)), ..Settings::default() }
}

fn killed(rig: &mut Rig, put: Put) -> JobId {
    let id = rig.put(put);
    rig.kill(KillTarget::Resting(Target::Id(id))).unwrap();
    id
}

fn header<'a>(letter: &'a LeasedJob, name: &str) -> Option<&'a str> {
    let headers = letter.headers.as_deref()?;
    headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

#[test]
fn a_letter_has_the_body_and_says_where_it_comes_from() {
    let mut rig = Rig::new();
    rig.set("t", with_dead_topic("morgue"));
    let put = Put {
        key: Some(bytes("order-7")),
        attempts_max: Some(1),
        priority: Some(3),
        headers: Some(vec![("a".to_owned(), "b".to_owned())].into()),
        ..Put::new(topic("t"), "the body")
    };
    let id = rig.put(put);
    let lease = rig.take("t");
    let error = Some(bytes("gateway is away"));
    let nack = Nack { token: lease.token, delay_ms: None, priority: None, error };
    rig.run(Command::Nack(vec![nack])).unwrap();
    assert_eq!(rig.state(id), None, "it left its topic");
    let letter = rig.take("morgue");
    assert_eq!((letter.body.as_ref(), letter.priority), (&b"the body"[..], 3));
    let id = id.to_string();
    for (name, value) in [
        ("a", "b"),
        ("dead-from", "t"),
        ("dead-reason", "gateway is away"),
        ("dead-attempts", "1"),
        ("dead-id", id.as_str()),
        ("dead-key", "order-7"),
    ] {
        assert_eq!(header(&letter, name), Some(value), "{name}");
    }
}

#[test]
fn every_kind_of_death_makes_one_letter() {
    let mut rig = Rig::new();
    rig.set("t", with_dead_topic("morgue"));
    let short = Put { ttr_ms: Some(10), attempts_max: Some(1), ..Put::new(topic("t"), "") };
    rig.put(short);
    rig.take("t");
    rig.pass(10);
    rig.put(Put { expires_after_ms: Some(10), ..Put::new(topic("t"), "") });
    rig.pass(10);
    killed(&mut rig, Put::new(topic("t"), ""));
    rig.put_now("t");
    let lease = rig.take("t");
    rig.kill(KillTarget::Token(lease.token)).unwrap();
    let letters = rig.reserve(&["morgue"], 10);
    let reasons: Vec<_> = letters.iter().map(|one| header(one, "dead-reason").unwrap()).collect();
    assert_eq!(reasons, ["lease expired", "expired", "", ""]);
    let stats = rig.stats("t").unwrap().counts;
    assert_eq!((stats.dead, stats.waiting, stats.kills), (0, 0, 4));
}

#[test]
fn a_letter_that_dies_again_tells_of_its_last_death() {
    let mut rig = Rig::new();
    rig.set("t", with_dead_topic("u"));
    rig.set("u", with_dead_topic("v"));
    let own = Some(Arc::new(vec![("dead-line".to_owned(), "noon".to_owned())]));
    killed(&mut rig, Put { headers: own, ..Put::new(topic("t"), "") });
    let letter = rig.take("u");
    rig.kill(KillTarget::Token(letter.token)).unwrap();
    let last = rig.take("v");
    assert_eq!(header(&last, "dead-line"), Some("noon"), "the producer's own header stays");
    assert_eq!(header(&last, "dead-from"), Some("u"));
    assert_eq!(header(&last, "dead-id"), Some(letter.id.to_string().as_str()));
    let headers = last.headers.as_deref().unwrap();
    assert_eq!(headers.iter().filter(|(name, _)| name == "dead-from").count(), 1);
}

#[test]
fn a_full_dead_topic_leaves_the_job_dead_where_it_was() {
    let mut rig = Rig::new();
    rig.set("t", with_dead_topic("morgue"));
    rig.set("morgue", Settings { jobs_max: Some(1), ..Settings::default() });
    let first = killed(&mut rig, Put::new(topic("t"), ""));
    let second = killed(&mut rig, Put::new(topic("t"), ""));
    assert_eq!(rig.state(first), None);
    assert_eq!(rig.state(second), Some(State::Dead));
    assert_eq!(rig.stats("morgue").unwrap().counts.waiting, 1);
}

#[test]
fn a_circle_of_dead_topics_is_refused() {
    let mut rig = Rig::new();
    rig.set("a", with_dead_topic("b"));
    rig.set("b", with_dead_topic("c"));
    for (name, dead_topic) in [("c", "a"), ("c", "b"), ("c", "c")] {
        let set = SetTopic { topic: topic(name), settings: with_dead_topic(dead_topic) };
        let error = rig.run(Command::from(set)).unwrap_err();
        says(&error, Code::Invalid, &["dead_topic", "come back"]);
    }
    rig.set("c", with_dead_topic("d"));
}

#[test]
fn a_letter_wakes_a_consumer_of_the_dead_topic() {
    let mut rig = Rig::new();
    rig.set("t", with_dead_topic("morgue"));
    let ticket = rig.begin(Command::Reserve(reserve(&["morgue"], 1, 1_000)));
    rig.tick();
    killed(&mut rig, Put::new(topic("t"), "x"));
    assert_eq!(jobs(rig.answer(ticket).unwrap()).len(), 1);
}
