//! Work per step is bounded, whatever it meets on disk.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use dormouse_check::faults::disk::SimDisk;
use dormouse_check::harness::disk::driver::{Driver, SimTime};
use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::JobId;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Cancel, Put, Target};
use dormouse_core::place::Class;
use dormouse_core::time::Clock;
use dormouse_core::timeline::{Head, Next, Timeline};
use dormouse_core::topic::{TopicName, TopicNo};
use dormouse_disk::store::Sizes;

/// Puts this many delayed jobs, moves them into a run, and cancels all of them.
fn cancelled(driver: &mut Driver, time: SimTime, count: usize) {
    let topic = TopicName::new("orders").unwrap();
    let mut ids: Vec<JobId> = Vec::new();
    while ids.len() < count {
        let put = Put { delay_ms: Some(1_000), ..Put::new(topic.clone(), "x") };
        let reply = step(driver, time, Command::Put(vec![put; BATCH_MAX]));
        let Reply::Put(puts) = reply else { panic!("{reply:?}") };
        ids.extend(puts.into_iter().map(|put| put.unwrap().id));
    }
    let now = driver.now(time);
    driver.seal(now);
    driver.freeze(now).unwrap();
    driver.write(usize::MAX).unwrap();
    driver.sync().unwrap();
    driver.report(false);
    driver.flush_all().unwrap();
    for ids in ids.chunks(BATCH_MAX) {
        let cancel = |id: &JobId| Cancel { target: Target::Id(*id), unless_leased: false };
        step(driver, time, Command::Cancel(ids.iter().map(cancel).collect()));
    }
}

fn step(driver: &mut Driver, time: SimTime, command: Command) -> Reply {
    let now = driver.now(time);
    let mut answers = driver.step(now, Ticket::next(), command).unwrap();
    answers.pop().unwrap().1.unwrap()
}

/// Three million cancelled jobs at a head once stalled every topic for four seconds.
#[test]
fn a_look_passes_a_portion_of_the_cancelled_jobs() {
    let disk = SimDisk::new();
    let mut time = SimTime::new();
    let mut driver = Driver::open(&disk, Sizes::default(), time).unwrap();
    cancelled(&mut driver, time, 5_000);
    time.advance(2_000, false);
    let now = driver.now(time);
    let timeline = driver.store.machine().timeline_mut();
    let topic = TopicNo(1);
    let class = Class::waiting(dormouse_core::limits::PRIORITY_DEFAULT, Clock::Steady);
    assert_eq!(timeline.oldest(topic, class).unwrap(), Head::Again);
    let mut looks = 1;
    while timeline.next(topic, now).unwrap() == Next::Again {
        looks += 1;
    }
    assert!((4..=20).contains(&looks), "{looks} looks for 5,000 jobs");
    assert_eq!(timeline.next(topic, now).unwrap(), Next::Empty);
}
