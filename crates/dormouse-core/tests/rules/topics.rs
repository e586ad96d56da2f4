//! Topics come to life and vanish.

use dormouse_core::command::Command;
use dormouse_core::error::Code;
use dormouse_core::fact::Fact;
use dormouse_core::limits::TOPIC_LINGER_MS;
use dormouse_core::op::*;
use dormouse_core::topic::{Settings, TopicNo};

use crate::support::*;

fn births(rig: &Rig) -> usize {
    rig.facts.iter().filter(|fact| matches!(fact, Fact::TopicBorn { .. })).count()
}

fn deaths(rig: &Rig) -> usize {
    rig.facts.iter().filter(|fact| matches!(fact, Fact::TopicGone { .. })).count()
}

fn pause(for_ms: Option<i64>) -> Command {
    Command::Pause(PauseTopic { topic: topic("t"), for_ms })
}

#[test]
fn a_topic_vanishes_when_it_is_empty() {
    let mut rig = Rig::new();
    rig.put_now("t");
    let lease = rig.take("t");
    rig.ack(lease.token).unwrap();
    assert_eq!(code(rig.stats("t")), Code::NotFound);
    assert_eq!(deaths(&rig), 0, "its number lingers");
    rig.pass(TOPIC_LINGER_MS);
    assert_eq!((births(&rig), deaths(&rig), rig.machine.topics_alive()), (1, 1, 0));
    rig.put_now("t");
    assert!(matches!(
        rig.facts.iter().rev().nth(1),
        Some(Fact::TopicBorn { topic: TopicNo(2), .. })
    ));
    assert_eq!(rig.stats("t").unwrap().counts.puts, 1);
    assert_eq!(rig.machine.totals().puts, 2);
    assert_eq!(rig.machine.next_wake(rig.now), None);
}

#[test]
fn a_topic_that_fills_again_at_once_is_not_born_again() {
    let mut rig = Rig::new();
    for _ in 0..10 {
        rig.put_now("t");
        let lease = rig.take("t");
        rig.ack(lease.token).unwrap();
        rig.pass(TOPIC_LINGER_MS / 2);
    }
    assert_eq!((births(&rig), deaths(&rig)), (1, 0));
    rig.put_now("t");
    rig.pass(10 * TOPIC_LINGER_MS);
    assert!(rig.stats("t").is_ok());
}

#[test]
fn settings_pauses_jobs_and_holds_keep_a_topic_alive() {
    let mut rig = Rig::new();
    rig.set("t", Settings { ttr_ms: Some(1), ..Settings::default() });
    rig.pass(10_000);
    assert!(rig.stats("t").is_ok());
    rig.run(pause(None)).unwrap();
    rig.set("t", Settings::default());
    rig.pass(10_000);
    assert!(rig.stats("t").is_ok());
    rig.run(Command::Resume(topic("t"))).unwrap();
    assert_eq!(code(rig.stats("t")), Code::NotFound);
    rig.pass(10_000);
    assert_eq!((births(&rig), deaths(&rig)), (1, 1));
    rig.run(pause(Some(20_000))).unwrap();
    rig.pass(19_999);
    assert!(rig.stats("t").is_ok());
    rig.pass(1);
    assert_eq!((births(&rig), deaths(&rig)), (2, 2));
    rig.put(Put { key: Some(bytes("k")), key_ttl_ms: Some(30_000), ..Put::new(topic("t"), "") });
    let lease = rig.take("t");
    rig.ack(lease.token).unwrap();
    rig.pass(29_999);
    assert!(rig.stats("t").is_ok(), "a key is still held");
    rig.pass(1);
    assert_eq!((births(&rig), deaths(&rig)), (3, 3));
    assert_eq!(rig.machine.timeline().iter().count(), 0, "the hold went with it");
}

#[test]
fn asking_brings_no_topic_to_life() {
    let mut rig = Rig::new();
    let ticket = rig.begin(Command::Reserve(reserve(&["t"], 1, 1_000)));
    rig.tick();
    assert_eq!(rig.stats("t").unwrap().waiters, 1);
    rig.run(Command::Resume(topic("t"))).unwrap();
    rig.run(Command::Purge(topic("t").into())).unwrap();
    rig.set("t", Settings::default());
    rig.pass(1_000);
    assert!(rig.answer(ticket).is_some());
    assert_eq!(code(rig.stats("t")), Code::NotFound);
    assert!(rig.facts.is_empty());
}

#[test]
fn a_watched_topic_stays() {
    let mut rig = Rig::new();
    rig.put_now("t");
    let lease = rig.take("t");
    rig.begin(Command::Reserve(reserve(&["t"], 1, 60_000)));
    rig.ack(lease.token).unwrap();
    rig.pass(59_000);
    assert_eq!(deaths(&rig), 0);
    rig.pass(1_000 + TOPIC_LINGER_MS);
    assert_eq!(deaths(&rig), 1);
}
