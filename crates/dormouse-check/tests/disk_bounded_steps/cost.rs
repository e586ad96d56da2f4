//! Portions are bounded by what they cost: bytes of jobs, lanes, and sources that are asked.

use dormouse_check::faults::disk::SimDisk;
use dormouse_check::harness::disk::driver::{Driver, SimTime};
use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::{JobId, State, Token};
use dormouse_core::limits::{BATCH_MAX, PORTION_BYTES};
use dormouse_core::op::{
    Cancel, Forecast, Kick, Kill, KillTarget, List, ListRange, Peek, Put, Reserve, ReviveTopic,
    Stats, Target,
};
use dormouse_core::timeline::{Next, Timeline};
use dormouse_core::topic::{TopicName, TopicNo};
use dormouse_disk::store::Sizes;

use crate::support::*;

const LARGE: usize = 256 << 10;
const LARGE_JOBS: usize = 24;
/// More lanes than one portion asks.
const PRIORITIES: usize = 2_000;
const DELAY_MS: i64 = 60_000;

fn open(time: SimTime) -> Driver {
    Driver::open(&SimDisk::new(), Sizes::default(), time).unwrap()
}

/// Puts large jobs and moves them into a run.
fn put_large(driver: &mut Driver, time: SimTime) -> Vec<JobId> {
    let put = Put { delay_ms: Some(DELAY_MS), ..Put::new(topic(), vec![b'x'; LARGE]) };
    let reply = step(driver, time, Command::Put(vec![put; LARGE_JOBS]));
    let Reply::Put(puts) = reply else { panic!("{reply:?}") };
    flush(driver, time);
    puts.into_iter().map(|put| put.unwrap().id).collect()
}

/// Puts a delayed job of each priority, the last first, and moves them into a run; so many times.
fn put_priorities(driver: &mut Driver, time: SimTime, runs: usize) {
    for _ in 0..runs {
        let put = |priority| {
            let delay_ms = Some(DELAY_MS + i64::from(priority));
            Put { delay_ms, priority: Some(priority), ..Put::new(topic(), "x") }
        };
        let puts = (0..PRIORITIES as u32).rev().map(put).collect();
        step(driver, time, Command::Put(puts));
        flush(driver, time);
    }
}

#[test]
fn kick_and_revival_of_large_jobs_are_bounded_by_bytes() {
    let time = SimTime::new();
    let mut driver = open(time);
    let portions = LARGE_JOBS * LARGE / PORTION_BYTES as usize;
    let ids = put_large(&mut driver, time);
    let kick = Command::Kick(Kick { topic: topic(), max: BATCH_MAX });
    let (reply, ticks) = step_in_portions(&mut driver, time, kick);
    assert_eq!(reply, Reply::Count(LARGE_JOBS as u64));
    assert!(ticks >= portions / 2, "{ticks} ticks");
    let kill = |id: &JobId| {
        let target = KillTarget::Resting(Target::Id(*id));
        Kill { target, error: None, priority: None }
    };
    let kills = Command::Kill(ids.iter().map(kill).collect());
    let (_, ticks) = step_in_portions(&mut driver, time, kills);
    assert!(ticks >= 1, "{ticks} ticks");
    flush(&mut driver, time);
    let revive = Command::ReviveTopic(ReviveTopic { topic: topic(), max: BATCH_MAX });
    let (reply, ticks) = step_in_portions(&mut driver, time, revive);
    assert_eq!(reply, Reply::Count(LARGE_JOBS as u64));
    assert!(ticks >= portions / 2, "{ticks} ticks");
    let list = List {
        topic: topic(),
        state: State::Ready,
        cursor: None,
        limit: 1_000,
        range: ListRange::default(),
    };
    let (reply, ticks) = step_in_portions(&mut driver, time, Command::List(list));
    let Reply::Page(page) = reply else { panic!("{reply:?}") };
    assert_eq!(page.jobs.len(), LARGE_JOBS);
    assert!(ticks >= portions / 2, "{ticks} ticks");
}

/// To pass a cancelled job is to read its block, which a large one has for itself.
#[test]
fn a_look_passes_few_cancelled_jobs_if_they_are_large() {
    let mut time = SimTime::new();
    let mut driver = open(time);
    let ids = put_large(&mut driver, time);
    cancel(&mut driver, time, &ids);
    let list = List {
        topic: topic(),
        state: State::Delayed,
        cursor: None,
        limit: 10,
        range: ListRange::default(),
    };
    let (_, ticks) = step_in_portions(&mut driver, time, Command::List(list));
    assert!(ticks >= 3, "{ticks} ticks");
    time.advance(2 * DELAY_MS as u64, false);
    let now = driver.now(time);
    let timeline = driver.store.machine().timeline_mut();
    let mut looks = 0;
    timeline.renew();
    while timeline.next(TopicNo(1), now).unwrap() != Next::Empty {
        looks += 1;
        assert!(looks < 1_000);
        timeline.renew();
    }
    assert!(looks >= 3, "{looks} looks");
}

#[test]
fn a_topic_with_many_priorities_is_asked_in_portions() {
    let time = SimTime::new();
    let mut driver = open(time);
    put_priorities(&mut driver, time, 3);
    let ask = |driver: &mut Driver, command| {
        let (reply, ticks) = step_in_portions(driver, time, command);
        assert!(ticks >= 3, "{ticks} ticks for {reply:?}");
        reply
    };
    let all = 3 * PRIORITIES as u64;
    let Reply::Stats(stats) = ask(&mut driver, Command::Stats(Stats { topic: Some(topic()) }))
    else {
        panic!()
    };
    assert_eq!((stats.delayed, stats.ready), (all, 0));
    let Reply::Stats(stats) = ask(&mut driver, Command::Stats(Stats { topic: None })) else {
        panic!()
    };
    assert_eq!((stats.delayed, stats.ready), (all, 0));
    let from_ms = driver.now(time).wall_ms;
    let to_ms = from_ms + 2 * DELAY_MS as u64;
    let forecast = Forecast { topic: topic(), from_ms, to_ms, step_ms: DELAY_MS as u64 };
    let forecast = ask(&mut driver, Command::Forecast(forecast));
    assert_eq!(forecast, Reply::Forecast(vec![0, all]));
    let peek = |state| Command::Peek(Peek { topic: topic(), state });
    assert_eq!(ask(&mut driver, peek(State::Ready)), Reply::View(None));
    let Reply::View(Some(view)) = ask(&mut driver, peek(State::Delayed)) else { panic!() };
    assert_eq!(view.job.progress.priority, 0);
    // The earliest, whatever their priority.
    let kick = Command::Kick(Kick { topic: topic(), max: 30 });
    assert_eq!(ask(&mut driver, kick), Reply::Count(30));
    let list = List {
        topic: topic(),
        state: State::Ready,
        cursor: None,
        limit: 1_000,
        range: ListRange::default(),
    };
    let Reply::Page(page) = ask(&mut driver, Command::List(list)) else { panic!() };
    let priorities: Vec<u32> = page.jobs.iter().map(|view| view.job.progress.priority).collect();
    let expected: Vec<u32> = (0..30).map(|index| index / 3).collect();
    assert_eq!(priorities, expected);
}

fn reserve(topics: Vec<TopicName>, max: usize) -> Command {
    Command::Reserve(Reserve { topics, max, wait_ms: 0, ttr_ms: None, session: None })
}

#[test]
fn heads_of_many_priorities_are_read_in_portions() {
    let mut time = SimTime::new();
    let mut driver = open(time);
    put_priorities(&mut driver, time, 3);
    let now = driver.now(time);
    let command = reserve(vec![topic()], BATCH_MAX);
    let mut answers = driver.step(now, Ticket::next(), command.clone()).unwrap();
    let mut ticks = 0;
    while answers.is_empty() {
        ticks += 1;
        time.advance(1, false);
        let now = driver.now(time);
        answers = driver.tick(now).unwrap();
    }
    assert!(matches!(&answers[0].1, Ok(Reply::Jobs(jobs)) if jobs.is_empty()), "{answers:?}");
    assert!(ticks >= 3, "{ticks} ticks");
    time.advance(2 * DELAY_MS as u64, false);
    let reply = step(&mut driver, time, command);
    let Reply::Jobs(jobs) = reply else { panic!("{reply:?}") };
    assert!(jobs.is_sorted_by_key(|job| job.priority), "by priority, though read in portions");
    assert!(jobs.len() >= 3 && jobs[2].priority == 0, "{} jobs", jobs.len());
}

/// Which of a thousand topics has the most urgent job is not known before the heads of all are
/// read, and that takes more than a tick.
#[test]
fn a_reserve_over_many_topics_keeps_the_order() {
    let time = SimTime::new();
    let mut driver = open(time);
    let names: Vec<TopicName> =
        (0..1_000).map(|number| TopicName::new(&format!("t{number}")).unwrap()).collect();
    for round in 0..2 {
        let put = |(number, name): (usize, &TopicName)| {
            let priority = Some((2_000 - number - 1_000 * round) as u32);
            Put { priority, ..Put::new(name.clone(), "x") }
        };
        step(&mut driver, time, Command::Put(names.iter().enumerate().map(put).collect()));
        flush(&mut driver, time);
    }
    let (reply, ticks) = step_in_portions(&mut driver, time, reserve(names.clone(), 2));
    let Reply::Jobs(jobs) = reply else { panic!("{reply:?}") };
    let priorities: Vec<u32> = jobs.iter().map(|job| job.priority).collect();
    assert_eq!(priorities, [1, 2]);
    assert!(ticks >= 2, "{ticks} ticks");
    // Now they are known.
    let (_, ticks) = step_in_portions(&mut driver, time, reserve(names, 2));
    assert_eq!(ticks, 0);
}

/// A newcomer does not overtake one that waits until all heads are read.
#[test]
fn a_reserve_that_reads_on_is_served_before_the_next() {
    let mut time = SimTime::new();
    let mut driver = open(time);
    put_priorities(&mut driver, time, 3);
    let urgent = Put { priority: Some(PRIORITIES as u32), ..Put::new(topic(), "x") };
    step(&mut driver, time, Command::Put(vec![urgent]));
    flush(&mut driver, time);
    let now = driver.now(time);
    let (first, second) = (Ticket::next(), Ticket::next());
    assert!(driver.step(now, first, reserve(vec![topic()], 1)).unwrap().is_empty());
    assert!(driver.step(now, second, reserve(vec![topic()], 1)).unwrap().is_empty());
    let mut answers = Vec::new();
    while answers.len() < 2 {
        time.advance(1, false);
        let now = driver.now(time);
        answers.extend(driver.tick(now).unwrap());
    }
    let jobs: Vec<(Ticket, usize)> = answers
        .into_iter()
        .map(|(ticket, answer, _)| {
            let Ok(Reply::Jobs(jobs)) = answer else { panic!("{answer:?}") };
            (ticket, jobs.len())
        })
        .collect();
    assert_eq!(jobs, [(first, 1), (second, 0)]);
    let get = Command::Get(vec![Target::Id(JobId(3 * PRIORITIES as u64 + 1))]);
    let Reply::Views(views) = step(&mut driver, time, get) else { panic!() };
    assert!(views[0].as_ref().is_ok_and(|view| view.state == State::Leased), "{views:?}");
}

/// Every command by id of a caller who is limited to some topics asks this first, so that it must
/// not read what it does not need: here every body is damaged.
#[test]
fn topics_of_large_jobs_are_told_without_reading_them() {
    let (time, disk) = (SimTime::new(), SimDisk::new());
    let mut driver = Driver::open(&disk, Sizes::default(), time).unwrap();
    let ids = put_large(&mut driver, time);
    for name in disk.names().iter().filter(|name| name.ends_with(".dmr")) {
        for offset in (0..LARGE_JOBS * LARGE).step_by(LARGE / 2) {
            disk.flip_byte(name, (LARGE / 4 + offset) as u64);
        }
    }
    let asked: Vec<JobId> = ids.iter().copied().cycle().take(BATCH_MAX).collect();
    let (reply, ticks) = step_in_portions(&mut driver, time, Command::TopicsOf(asked));
    assert_eq!(reply, Reply::TopicsOf(vec![Ok(topic()); BATCH_MAX]));
    assert_eq!(ticks, 0);
    let now = driver.now(time);
    let read = Command::Get(vec![Target::Id(ids[0])]);
    driver.step(now, Ticket::next(), read).expect_err("to read one finds the damage");
}

/// To cancel a large job, or to look at it, is to read it whole: a batch once read 4 GiB in one
/// step.
#[test]
fn batches_of_large_jobs_are_bounded_by_bytes() {
    let time = SimTime::new();
    let mut driver = open(time);
    let ids = put_large(&mut driver, time);
    let targets: Vec<Target> = ids.iter().map(|id| Target::Id(*id)).collect();
    let (reply, ticks) = step_in_portions(&mut driver, time, Command::Get(targets.clone()));
    let Reply::Views(views) = reply else { panic!("{reply:?}") };
    assert!(views.len() == LARGE_JOBS && views.iter().all(Result::is_ok));
    assert!(ticks >= 1, "{ticks} ticks");
    let guess = |id: &JobId| Token { id: *id, fence: 7 };
    let acks = Command::Ack(ids.iter().map(guess).collect());
    let (reply, ticks) = step_in_portions(&mut driver, time, acks);
    let Reply::Ended(ended) = reply else { panic!("{reply:?}") };
    assert!(ended.len() == LARGE_JOBS && ended.iter().all(Result::is_err));
    assert!(ticks >= 1, "{ticks} ticks for guessed tokens");
    let cancel = |target| Cancel { target, unless_leased: false };
    let cancels = targets.into_iter().map(cancel).collect();
    let (reply, ticks) = step_in_portions(&mut driver, time, Command::Cancel(cancels));
    let Reply::Changed(changed) = reply else { panic!("{reply:?}") };
    assert!(changed.len() == LARGE_JOBS && changed.iter().all(Result::is_ok));
    assert!(ticks >= 1, "{ticks} ticks");
}
