//! A store on a simulated disk, driven step by step.

use dormouse_check::harness::disk::driver::{Driver, SimTime};
use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::JobId;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Cancel, Put, Target};
use dormouse_core::topic::TopicName;

pub(crate) const TOPIC: &str = "orders";
/// More than a reading passes at once.
pub(crate) const MANY: usize = 5_000;

pub(crate) fn topic() -> TopicName {
    TopicName::new(TOPIC).unwrap()
}

pub(crate) fn put(driver: &mut Driver, time: SimTime, count: usize, delay_ms: i64) -> Vec<JobId> {
    let mut ids = Vec::new();
    while ids.len() < count {
        let put = Put { delay_ms: Some(delay_ms), ..Put::new(topic(), "x") };
        let puts = vec![put; BATCH_MAX.min(count - ids.len())];
        let reply = step(driver, time, Command::Put(puts));
        let Reply::Put(puts) = reply else { panic!("{reply:?}") };
        ids.extend(puts.into_iter().map(|put| put.unwrap().id));
    }
    ids
}

pub(crate) fn cancel(driver: &mut Driver, time: SimTime, ids: &[JobId]) {
    for ids in ids.chunks(BATCH_MAX) {
        let cancel = |id: &JobId| Cancel { target: Target::Id(*id), unless_leased: false };
        step(driver, time, Command::Cancel(ids.iter().map(cancel).collect()));
    }
}

/// Makes what was done durable.
pub(crate) fn sync(driver: &mut Driver, time: SimTime) {
    driver.seal(driver.now(time));
    driver.write(usize::MAX).unwrap();
    driver.sync().unwrap();
    driver.report(false);
}

/// Moves the memtable into a run.
pub(crate) fn flush(driver: &mut Driver, time: SimTime) {
    let now = driver.now(time);
    driver.seal(now);
    driver.freeze(now).unwrap();
    driver.write(usize::MAX).unwrap();
    driver.sync().unwrap();
    driver.report(false);
    driver.flush_all().unwrap();
}

/// Puts this many delayed jobs, moves them into a run, and cancels all of them.
pub(crate) fn cancelled(driver: &mut Driver, time: SimTime, count: usize) {
    let ids = put(driver, time, count, 1_000);
    flush(driver, time);
    cancel(driver, time, &ids);
}

pub(crate) fn step(driver: &mut Driver, time: SimTime, command: Command) -> Reply {
    step_in_portions(driver, time, command).0
}

/// The reply to a command, and the ticks that it took.
pub(crate) fn step_in_portions(
    driver: &mut Driver,
    time: SimTime,
    command: Command,
) -> (Reply, usize) {
    let now = driver.now(time);
    let mut answers = driver.step(now, Ticket::next(), command).unwrap();
    let mut ticks = 0;
    while answers.is_empty() {
        ticks += 1;
        assert!(ticks < 1_000, "it is never answered");
        answers = driver.tick(now).unwrap();
    }
    (answers.pop().unwrap().1.unwrap(), ticks)
}
