//! Which events a watcher gets, and when.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dormouse_core::backend::Backend;
use dormouse_core::command::Command;
use dormouse_core::event::{Event, EventKind, Watcher};
use dormouse_core::op::{
    Cancel, Kick, Kill, KillTarget, Nack, OnConflict, PauseTopic, Put, Release, Reschedule,
    SetTopic, Target,
};
use dormouse_core::topic::Settings;
use dormouse_disk::clock::VirtualClock;
use dormouse_disk::engine::{Engine, Options};

use common::gate::{Gate, GateDisk};
use common::{TIMEOUT, call, put_one, request, reserve, sink, topic};

#[derive(Default)]
struct Log(Mutex<Vec<Event>>);

impl Log {
    fn on(engine: &Engine) -> Arc<Log> {
        let log = Arc::new(Log::default());
        engine.watch(Some(log.clone()));
        log
    }

    fn kinds(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().iter().map(|event| event.kind.as_str()).collect()
    }
}

impl Watcher for Log {
    fn observe(&self, events: &mut Vec<Event>) {
        assert!(!events.is_empty(), "called for nothing");
        self.0.lock().unwrap().append(events);
    }
}

/// The same in memory and on disk.
fn engines(clock: &VirtualClock, test: impl Fn(&Engine)) {
    let options = Options { clock: Arc::new(clock.clone()), ..Options::default() };
    test(&Engine::memory(options.clone()));
    let dir = tempfile::tempdir().unwrap();
    test(&Engine::open(dir.path(), options).unwrap());
}

fn keyed(key: &'static str) -> Put {
    let on_conflict = OnConflict::Replace;
    Put { key: Some(key.into()), on_conflict, attempts_max: Some(2), ..Put::new(topic("t"), "x") }
}

#[test]
fn the_life_of_a_job_is_told_in_order() {
    let clock = VirtualClock::new();
    engines(&clock, |engine| {
        let log = Log::on(engine);
        let id = put_one(engine, Put { delay_ms: Some(5_000), ..keyed("k") });
        put_one(engine, keyed("k"));
        let token = reserve(engine, "t", 1)[0].token;
        let release = Release { token, delay_ms: None, priority: None };
        call(engine, Command::Release(vec![release])).unwrap();
        let nack = |token| {
            let nack = Nack { token, delay_ms: Some(0), priority: None, error: None };
            call(engine, Command::Nack(vec![nack])).unwrap();
        };
        nack(reserve(engine, "t", 1)[0].token);
        nack(reserve(engine, "t", 1)[0].token);
        call(engine, Command::Revive(vec![Target::Id(id)])).unwrap();
        let due = Reschedule { target: Target::Id(id), delay_ms: Some(900), at_ms: None };
        call(engine, Command::Reschedule(vec![due])).unwrap();
        call(engine, Command::Kick(Kick { topic: topic("t"), max: 1 })).unwrap();
        let token = reserve(engine, "t", 1)[0].token;
        call(engine, Command::Ack(vec![token])).unwrap();
        let expected = [
            "put",
            "replaced",
            "reserved",
            "released",
            "reserved",
            "nacked",
            "reserved",
            "died",
            "revived",
            "rescheduled",
            "rescheduled",
            "reserved",
            "acked",
        ];
        assert_eq!(log.kinds(), expected);
        let events = log.0.lock().unwrap();
        assert!(events.iter().all(|event| event.id == Some(id) && event.topic == topic("t")));
        let attempts: Vec<u32> = events.iter().map(|event| event.attempt).collect();
        assert_eq!(attempts, [0, 0, 1, 0, 1, 1, 2, 2, 0, 0, 0, 1, 1]);
        let now_ms = events[0].at_ms;
        assert_eq!(events[0].due_at, Some(now_ms + 5_000));
        assert_eq!((events[2].due_at, events[3].due_at), (None, Some(now_ms)));
        assert_eq!(events[7].due_at, Some(now_ms), "when it died");
        assert_eq!(events[12].due_at, None);
    });
}

#[test]
fn what_time_does_and_what_is_done_to_topics_is_told() {
    let clock = VirtualClock::new();
    engines(&clock, |engine| {
        let log = Log::on(engine);
        put_one(engine, keyed("k"));
        reserve(engine, "t", 1);
        clock.advance(Duration::from_secs(60));
        let token = reserve(engine, "t", 1)[0].token;
        clock.advance(Duration::from_secs(60));
        // The expiry is done by the time this is answered.
        let settings = Settings { dead_max: Some(0), ..Settings::default() };
        let set = SetTopic { topic: topic("t"), settings };
        call(engine, Command::from(set)).unwrap();
        assert!(token.fence > 0);
        let id = put_one(engine, keyed("l"));
        let target = KillTarget::Resting(Target::Id(put_one(engine, keyed("m"))));
        call(engine, Command::Kill(vec![Kill { target, error: None, priority: None }])).unwrap();
        let cancel = Cancel { target: Target::Id(id), unless_leased: false };
        call(engine, Command::Cancel(vec![cancel])).unwrap();
        let pause = PauseTopic { topic: topic("t"), for_ms: None };
        call(engine, Command::Pause(pause)).unwrap();
        call(engine, Command::Resume(topic("t"))).unwrap();
        put_one(engine, keyed("n"));
        call(engine, Command::Purge(topic("t").into())).unwrap();
        let expected = [
            "put",
            "reserved",
            "expired",
            "reserved",
            "died",
            "topic_set",
            "trimmed",
            "put",
            "put",
            "killed",
            "trimmed",
            "cancelled",
            "paused",
            "resumed",
            "put",
            "purged",
        ];
        assert_eq!(log.kinds(), expected);
        let events = log.0.lock().unwrap();
        assert!([5, 12, 13, 15].iter().all(|&index| events[index].id.is_none()));
        assert_eq!(events[2].kind, EventKind::Expired);
        assert_eq!(events[2].due_at, Some(events[0].at_ms + 60_000), "when the lease ran out");
    });
}

#[test]
fn nobody_is_told_after_watching_and_another_one_instead() {
    engines(&VirtualClock::new(), |engine| {
        put_one(engine, keyed("before"));
        let first = Log::on(engine);
        put_one(engine, keyed("k"));
        let second = Log::on(engine);
        put_one(engine, keyed("k"));
        engine.watch(None);
        put_one(engine, keyed("k"));
        assert_eq!((first.kinds(), second.kinds()), (vec!["put"], vec!["replaced"]));
        assert_eq!(Arc::strong_count(&second), 1, "it is let go");
    });
}

#[test]
fn events_wait_for_the_sync_and_a_replay_has_none() {
    let dir = tempfile::tempdir().unwrap();
    let disk = GateDisk::new(dir.path());
    let engine = Engine::open_on(Arc::new(disk.clone()), Options::default()).unwrap();
    let log = Log::on(&engine);
    disk.set(Gate::Shut);
    let (sink, arrived) = sink();
    let put = || request(Command::Put(vec![Put::new(topic("t"), "x")]));
    engine.submit(vec![put(), put()], sink).unwrap();
    assert!(arrived.recv_timeout(Duration::from_millis(100)).is_err());
    assert!(log.kinds().is_empty(), "told before it was durable");
    disk.set(Gate::Open);
    arrived.recv_timeout(TIMEOUT).unwrap().unwrap();
    assert_eq!(log.kinds(), ["put", "put"], "before its answer");
    engine.close().unwrap();

    let engine = Engine::open(dir.path(), Options::default()).unwrap();
    let log = Log::on(&engine);
    assert_eq!(reserve(&engine, "t", 5).len(), 2);
    engine.close().unwrap();
    assert_eq!(log.kinds(), ["reserved", "reserved"]);
}

#[test]
fn what_could_not_be_synced_is_not_told() {
    let dir = tempfile::tempdir().unwrap();
    let disk = GateDisk::new(dir.path());
    let engine = Engine::open_on(Arc::new(disk.clone()), Options::default()).unwrap();
    let log = Log::on(&engine);
    put_one(&engine, Put::new(topic("t"), "x"));
    disk.set(Gate::Broken);
    call(&engine, Command::Put(vec![Put::new(topic("t"), "x")])).unwrap_err();
    assert!(engine.close().is_err());
    assert_eq!(log.kinds(), ["put"]);
}
