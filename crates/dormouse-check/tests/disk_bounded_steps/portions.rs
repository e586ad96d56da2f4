//! Work per step is bounded, whatever it meets on disk.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use dormouse_check::faults::disk::SimDisk;
use dormouse_check::harness::disk::driver::{Driver, SimTime};
use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::{JobId, State};
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Cancel, Forecast, Kick, List, Peek, Put, Stats, Target};
use dormouse_core::place::Class;
use dormouse_core::time::Clock;
use dormouse_core::timeline::{Head, Next, Timeline};
use dormouse_core::topic::{TopicName, TopicNo};
use dormouse_disk::store::Sizes;

const TOPIC: &str = "orders";
/// More than a reading passes at once.
const MANY: usize = 5_000;

fn topic() -> TopicName {
    TopicName::new(TOPIC).unwrap()
}

fn put(driver: &mut Driver, time: SimTime, count: usize, delay_ms: i64) -> Vec<JobId> {
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

fn cancel(driver: &mut Driver, time: SimTime, ids: &[JobId]) {
    for ids in ids.chunks(BATCH_MAX) {
        let cancel = |id: &JobId| Cancel { target: Target::Id(*id), unless_leased: false };
        step(driver, time, Command::Cancel(ids.iter().map(cancel).collect()));
    }
}

/// Moves the memtable into a run.
fn flush(driver: &mut Driver, time: SimTime) {
    let now = driver.now(time);
    driver.seal(now);
    driver.freeze(now).unwrap();
    driver.write(usize::MAX).unwrap();
    driver.sync().unwrap();
    driver.report(false);
    driver.flush_all().unwrap();
}

/// Puts this many delayed jobs, moves them into a run, and cancels all of them.
fn cancelled(driver: &mut Driver, time: SimTime, count: usize) {
    let ids = put(driver, time, count, 1_000);
    flush(driver, time);
    cancel(driver, time, &ids);
}

fn step(driver: &mut Driver, time: SimTime, command: Command) -> Reply {
    step_in_portions(driver, time, command).0
}

/// The reply to a command, and the ticks that it took.
fn step_in_portions(driver: &mut Driver, time: SimTime, command: Command) -> (Reply, usize) {
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
    while timeline.next(topic, now).unwrap() == Next::Again {
        looks += 1;
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
    let list = List { topic: topic(), state: State::Delayed, cursor: None, limit: 2 };
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

/// Most jobs of a delay queue are cancelled: they must not take space until they are due.
#[test]
fn cancelled_jobs_give_their_space_back_before_they_are_due() {
    let sizes = Sizes { memtable_bytes: 64 << 10, segment_bytes: 256 << 10, merge_runs: 100 };
    let disk = SimDisk::new();
    let mut time = SimTime::new();
    let mut driver = Driver::open(&disk, sizes, time).unwrap();
    let kept = put(&mut driver, time, 2_000, 3_600_000);
    flush(&mut driver, time);
    for _ in 0..4 {
        let ids = put(&mut driver, time, 2_000, 3_600_000);
        flush(&mut driver, time);
        cancel(&mut driver, time, &ids);
    }
    let bytes_before = driver.store.runs().1;
    // Nothing else happens.
    for _ in 0..60 {
        time.advance(1_000, false);
        let now = driver.now(time);
        driver.tick(now).unwrap();
        if driver.store.wants_freeze() {
            flush(&mut driver, time);
        }
        driver.begin_merge(None);
        while driver.merge_action().unwrap() {}
    }
    let (runs, bytes) = driver.store.runs();
    assert!(runs <= 2 && bytes * 3 < bytes_before, "{runs} runs, {bytes} of {bytes_before} bytes");
    assert!(driver.store.journal_bytes() < 8 << 10, "{} bytes", driver.store.journal_bytes());
    let stats = step(&mut driver, time, Command::Stats(Stats { topic: Some(topic()) }));
    let Reply::Stats(stats) = stats else { panic!("{stats:?}") };
    assert_eq!(stats.delayed, kept.len() as u64);
    let again = Driver::open(&disk, sizes, time);
    assert!(again.is_ok());
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
    assert_eq!(step(&mut driver, time, Command::Purge(topic())), Reply::Count(MANY as u64 + 1));
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
