//! The verbs. That they answer as the rules do is up to the conformance suite; here is what is
//! special on Redis.

use dormouse_core::error::Code;
use dormouse_core::job::State;
use dormouse_core::op::{
    ChangeSchedule, RemoveSchedule, RunSchedule, ScheduleChange, ScheduleConflict, ScheduleOutcome,
    ScheduleState, Schedules, SetTopic, Stats,
};
use dormouse_core::topic::Settings;

use super::*;

#[test]
fn a_schedule_is_created_kept_replaced_and_removed() {
    let rig = Rig::start(3);
    let put = every("s", Overlap::Allow);
    assert_eq!(rig.put(put.clone()).outcome, ScheduleOutcome::Created);
    assert_eq!(rig.put(put.clone()).outcome, ScheduleOutcome::Unchanged);
    let kept = PutSchedule { on_conflict: ScheduleConflict::Keep, ..every("s", Overlap::Skip) };
    assert_eq!(rig.put(kept).outcome, ScheduleOutcome::Duplicate);
    let reply = rig.put(PutSchedule { if_version: Some(1), ..every("s", Overlap::Skip) });
    assert_eq!((reply.outcome, reply.version), (ScheduleOutcome::Replaced, 2));
    let stale = PutSchedule { if_version: Some(1), ..put };
    let refused = rig.ask(Command::PutSchedule(Box::new(stale))).unwrap_err();
    assert_eq!(refused.code, Code::Conflict);
    let view = rig.get("s");
    assert_eq!((view.version, view.definition.overlap), (2, Overlap::Skip));
    assert_eq!(view.created_at, rig.clock.now_ms());

    let remove = RemoveSchedule { topic: topic(), name: name("s"), cancel_job: false };
    assert_eq!(rig.ask(Command::RemoveSchedule(remove.clone())), Ok(Reply::Done));
    assert_eq!(rig.ask(Command::RemoveSchedule(remove)).unwrap_err().code, Code::NotFound);
    assert_eq!(rig.ask(get("s")).unwrap_err().code, Code::NotFound);
}

/// A refused put creates nothing, and a topic with nothing but a schedule exists.
#[test]
fn a_topic_with_a_schedule_exists() {
    let rig = Rig::start(1);
    let stats = || rig.ask(Command::Stats(Stats { topic: Some(topic()) }));
    let wrong = PutSchedule { if_version: Some(3), ..every("s", Overlap::Skip) };
    assert!(rig.ask(Command::PutSchedule(Box::new(wrong))).is_err());
    assert_eq!(stats().unwrap_err().code, Code::NotFound);
    rig.put(every("s", Overlap::Skip));
    assert!(stats().is_ok());
}

/// They were refused on Redis.
#[test]
fn the_jobs_of_a_schedule_have_its_group() {
    let grouped = || {
        let mut put = every("s", Overlap::Allow);
        put.template.group = Some("g".into());
        put
    };
    let rig = Rig::start(1);
    let settings = Settings { group_leased_max: Some(1), ..Settings::default() };
    rig.ask(Command::from(SetTopic { topic: topic(), settings })).unwrap();
    rig.put(grouped());
    for _ in 0..3 {
        rig.pass(100, "s");
    }
    let first = rig.reserve(60_000);
    assert_eq!(first[0].group.as_deref(), Some(b"g".as_slice()));
    assert_eq!(rig.reserve(60_000), [], "the group has one slot");
    rig.ask(Command::Ack(vec![first[0].token])).unwrap();
    assert_eq!(rig.reserve(60_000).len(), 1);
    let several = Rig::start(2);
    let refused = several.ask(Command::PutSchedule(Box::new(grouped()))).unwrap_err();
    assert!(refused.to_string().contains("2 partitions"), "{refused}");
}

#[test]
fn pages_show_all_in_the_order_of_their_ticks_and_the_parked_last() {
    let rig = Rig::start(3);
    for number in 0..7 {
        let mut put = every(&format!("s{number}"), Overlap::Allow);
        put.every_ms = Some(1_000 - 100 * number);
        rig.put(put);
    }
    let change = ScheduleChange::Pause { for_ms: None };
    let paused = ChangeSchedule { topic: topic(), name: name("s5"), change };
    assert!(rig.ask(Command::ChangeSchedule(paused)).is_ok());
    let (mut names, mut cursor) = (Vec::new(), None);
    loop {
        let page = Schedules { topic: topic(), state: None, cursor, limit: 2 };
        let Ok(Reply::Schedules(page)) = rig.ask(Command::Schedules(page)) else { panic!() };
        assert!(page.schedules.len() <= 2);
        names.extend(page.schedules.into_iter().map(|view| view.name.to_string()));
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(names, ["s6", "s4", "s3", "s2", "s1", "s0", "s5"]);
    let state = Some(ScheduleState::Paused);
    let page = Schedules { topic: topic(), state, cursor: None, limit: 10 };
    let Ok(Reply::Schedules(page)) = rig.ask(Command::Schedules(page)) else { panic!() };
    assert_eq!(page.schedules.len(), 1);
}

#[test]
fn ticks_are_given_and_counted() {
    let rig = Rig::start(1);
    let began_ms = rig.clock.now_ms();
    rig.put(every("s", Overlap::Allow));
    let view = rig.pass(100, "s");
    assert_eq!((view.counts.given, view.counts.total()), (1, 1));
    let jobs = rig.jobs(State::Ready);
    let tick = jobs[0].job.content.tick.clone().unwrap();
    assert_eq!((tick.schedule.as_str(), tick.tick_ms, tick.missed), ("s", began_ms + 100, 0));
    assert_eq!((jobs[0].due_at, view.last.unwrap().id), (began_ms + 100, jobs[0].job.id));
    // Three at once: the latest is given.
    let counts = rig.pass(300, "s").counts;
    assert_eq!((counts.given, counts.missed), (2, 2));
    let run = RunSchedule { topic: topic(), name: name("s"), ticks: None };
    assert!(matches!(rig.ask(Command::RunSchedule(run)), Ok(Reply::Put(jobs)) if jobs.len() == 1));
    let from = i64::try_from(began_ms).unwrap() + 100;
    let run = RunSchedule { topic: topic(), name: name("s"), ticks: Some((from, from + 300)) };
    let Ok(Reply::Put(given)) = rig.ask(Command::RunSchedule(run)) else { panic!() };
    assert!(given.len() == 3 && given.iter().all(Result::is_ok));
    assert_eq!(rig.get("s").counts, counts);
    assert_eq!(rig.jobs(State::Ready).len(), 6);
}

/// The tick of a full topic is given when there is room.
#[test]
fn a_full_topic_gets_its_tick_later() {
    let rig = Rig::start(1);
    let settings = Settings { jobs_max: Some(1), ..Settings::default() };
    assert!(rig.ask(Command::from(SetTopic { topic: topic(), settings })).is_ok());
    rig.put(every("s", Overlap::Allow));
    assert_eq!(rig.pass(100, "s").counts.given, 1);
    assert_eq!(rig.pass(100, "s").counts.total(), 1);
    let job = rig.reserve(10_000).remove(0);
    assert!(rig.ask(Command::Ack(vec![job.token])).is_ok());
    // It is tried again after a second.
    let counts = rig.pass(1_100, "s").counts;
    assert!(counts.given == 2 && counts.missed >= 9, "{counts:?}");
}
