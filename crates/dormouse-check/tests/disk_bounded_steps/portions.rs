//! Long commands in portions, and cancelled jobs that are passed in portions.

use dormouse_check::faults::disk::SimDisk;
use dormouse_check::harness::disk::driver::{Driver, SimTime};
use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::{JobId, State};
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Forecast, Kick, List, ListRange, Peek, Put, Reschedule, Stats, Target};
use dormouse_core::place::Class;
use dormouse_core::time::Clock;
use dormouse_core::timeline::{Head, Next, Timeline};
use dormouse_core::topic::{TopicName, TopicNo};
use dormouse_disk::store::Sizes;

use crate::support::*;

/// Three million cancelled jobs at a head once stalled every topic for four seconds.
#[test]
fn a_look_passes_a_portion_of_the_cancelled_jobs() {
    let disk = SimDisk::new();
    let mut time = SimTime::new();
    let mut driver = Driver::open(&disk, Sizes::default(), time).unwrap();
    cancelled(&mut driver, time, MANY);
    time.advance(2_000, false);
    let now = driver.now(time);
    let timeline = driver.store.machine().timeline_mut();
    let topic = TopicNo(1);
    let class = Class::waiting(dormouse_core::limits::PRIORITY_DEFAULT, Clock::Steady);
    assert_eq!(timeline.oldest(topic, class).unwrap(), Head::Again);
    let mut looks = 1;
    timeline.renew();
    while timeline.next(topic, now).unwrap() == Next::Again {
        looks += 1;
        timeline.renew();
    }
    assert!((4..=20).contains(&looks), "{looks} looks for 5,000 jobs");
    assert_eq!(timeline.next(topic, now).unwrap(), Next::Empty);
}

#[test]
fn list_peek_and_kick_pass_cancelled_jobs_in_portions() {
    let disk = SimDisk::new();
    let time = SimTime::new();
    let mut driver = Driver::open(&disk, Sizes::default(), time).unwrap();
    // A job that is ready, cancelled ones behind it, and three behind those.
    put(&mut driver, time, 1, 0);
    cancelled(&mut driver, time, MANY);
    let behind = put(&mut driver, time, 3, 2_000);
    let list = List {
        topic: topic(),
        state: State::Delayed,
        cursor: None,
        limit: 2,
        range: ListRange::default(),
    };
    let (reply, ticks) = step_in_portions(&mut driver, time, Command::List(list));
    let Reply::Page(page) = reply else { panic!("{reply:?}") };
    let ids: Vec<JobId> = page.jobs.iter().map(|view| view.job.id).collect();
    assert_eq!(ids, behind[..2]);
    assert!(page.cursor.is_some());
    assert!((4..=10).contains(&ticks), "{ticks} ticks to pass {MANY} jobs");
    // They were passed once: the next reading goes on behind them.
    let peek = Peek { topic: topic(), state: State::Delayed };
    let (reply, ticks) = step_in_portions(&mut driver, time, Command::Peek(peek));
    let Reply::View(Some(view)) = reply else { panic!("{reply:?}") };
    assert_eq!((view.job.id, ticks), (behind[0], 0));
    let kick = Kick { topic: topic(), max: 2 };
    assert_eq!(step(&mut driver, time, Command::Kick(kick.clone())), Reply::Count(2));
    // A job that arrives among them is found.
    let among = put(&mut driver, time, 1, 500)[0];
    let peek = Peek { topic: topic(), state: State::Delayed };
    let Reply::View(Some(view)) = step(&mut driver, time, Command::Peek(peek)) else { panic!() };
    assert_eq!(view.job.id, among);
    assert_eq!(step(&mut driver, time, Command::Kick(kick)), Reply::Count(2));
}

#[test]
fn others_have_their_turn_during_a_long_kick() {
    let disk = SimDisk::new();
    let time = SimTime::new();
    let mut driver = Driver::open(&disk, Sizes::default(), time).unwrap();
    put(&mut driver, time, BATCH_MAX, 1_000);
    let now = driver.now(time);
    let kick = Command::Kick(Kick { topic: topic(), max: BATCH_MAX });
    let long = Ticket::next();
    assert!(driver.step(now, long, kick).unwrap().is_empty());
    let short = Ticket::next();
    let stats = Command::Stats(Stats { topic: Some(topic()) });
    let answers = driver.step(now, short, stats).unwrap();
    let [(ticket, Ok(Reply::Stats(stats)), _)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(*ticket, short);
    assert!(stats.ready > 0 && stats.delayed > 0, "the kick is half done: {stats:?}");
    let mut answers = Vec::new();
    while answers.is_empty() {
        answers = driver.tick(now).unwrap();
    }
    let [(ticket, Ok(Reply::Count(count)), _)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((*ticket, *count), (long, BATCH_MAX as u64));
}

#[test]
fn a_forecast_counts_some_steps_at_a_time() {
    let disk = SimDisk::new();
    let time = SimTime::new();
    let mut driver = Driver::open(&disk, Sizes::default(), time).unwrap();
    for run in 0..40 {
        put(&mut driver, time, 10, 1_000 * run + 500);
        flush(&mut driver, time);
    }
    let from_ms = driver.now(time).wall_ms;
    let forecast = Forecast { topic: topic(), from_ms, to_ms: from_ms + 40_000, step_ms: 1_000 };
    let (reply, ticks) = step_in_portions(&mut driver, time, Command::Forecast(forecast));
    assert_eq!(reply, Reply::Forecast(vec![10; 40]));
    assert!(ticks >= 2, "{ticks} ticks for 40 steps over 40 runs");
}

#[test]
fn a_large_topic_in_the_memtable_is_purged_whole() {
    let disk = SimDisk::new();
    let time = SimTime::new();
    let mut driver = Driver::open(&disk, Sizes::default(), time).unwrap();
    cancelled(&mut driver, time, MANY);
    put(&mut driver, time, MANY, 1_000);
    let other = TopicName::new("other").unwrap();
    let keyed = |topic: &TopicName| Put { key: Some("k".into()), ..Put::new(topic.clone(), "x") };
    step(&mut driver, time, Command::Put(vec![keyed(&other), keyed(&topic())]));
    assert_eq!(
        step(&mut driver, time, Command::Purge(topic().into())),
        Reply::Count(MANY as u64 + 1)
    );
    let stats = |driver: &mut Driver, topic: &TopicName| {
        let stats = Command::Stats(Stats { topic: Some(topic.clone()) });
        let Reply::Stats(stats) = step(driver, time, stats) else { panic!() };
        stats.counts.waiting
    };
    step(&mut driver, time, Command::Put(vec![keyed(&topic())]));
    assert_eq!(stats(&mut driver, &topic()), 1);
    assert_eq!(stats(&mut driver, &other), 1);
    let get = Command::Get(vec![Target::Key { topic: topic(), key: "k".into() }]);
    let Reply::Views(views) = step(&mut driver, time, get) else { panic!() };
    assert!(views[0].is_ok(), "{views:?}");
}

/// A list keeps what it has read from portion to portion; a job that moves on meanwhile was once
/// shown at both places.
#[test]
fn a_job_that_moves_during_a_list_is_shown_once() {
    let disk = SimDisk::new();
    let time = SimTime::new();
    let mut driver = Driver::open(&disk, Sizes::default(), time).unwrap();
    let first = put(&mut driver, time, 1, 500)[0];
    cancelled(&mut driver, time, MANY);
    let last = put(&mut driver, time, 1, 2_000)[0];
    let now = driver.now(time);
    let list = List {
        topic: topic(),
        state: State::Delayed,
        cursor: None,
        limit: 10,
        range: ListRange::default(),
    };
    assert!(driver.step(now, Ticket::next(), Command::List(list)).unwrap().is_empty());
    let target = Target::Id(first);
    let later = Reschedule { target, delay_ms: Some(3_000), at_ms: None };
    assert_eq!(
        driver.step(now, Ticket::next(), Command::Reschedule(vec![later])).unwrap().len(),
        1
    );
    let mut answers = Vec::new();
    while answers.is_empty() {
        answers = driver.tick(now).unwrap();
    }
    let [(_, Ok(Reply::Page(page)), _)] = &answers[..] else { panic!("{answers:?}") };
    let ids: Vec<JobId> = page.jobs.iter().map(|view| view.job.id).collect();
    assert_eq!(ids, [last, first]);
}
