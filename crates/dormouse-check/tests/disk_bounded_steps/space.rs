//! Space comes back in the background, also when nothing else happens.

use dormouse_check::faults::disk::SimDisk;
use dormouse_check::harness::disk::driver::{Driver, SimTime};
use dormouse_core::command::{Command, Reply};
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Put, Reserve, Stats};
use dormouse_core::place::Class;
use dormouse_core::time::Clock;
use dormouse_core::timeline::Timeline;
use dormouse_core::topic::{TopicName, TopicNo};
use dormouse_disk::store::Sizes;

use crate::support::*;

/// Nothing else happens, and the background work is done.
fn wait_a_minute(driver: &mut Driver, time: &mut SimTime) {
    for _ in 0..60 {
        time.advance(1_000, false);
        let now = driver.now(*time);
        driver.tick(now).unwrap();
        if driver.store.wants_freeze() {
            flush(driver, *time);
        }
        driver.begin_merge(None);
        while driver.merge_action().unwrap() {}
    }
}

/// A purge only marks a topic; its runs once went only when others were merged.
#[test]
fn purged_jobs_give_their_space_back_while_nothing_else_happens() {
    let sizes = Sizes { memtable_bytes: 64 << 10, segment_bytes: 256 << 10, merge_runs: 100 };
    let disk = SimDisk::new();
    let mut time = SimTime::new();
    let mut driver = Driver::open(&disk, sizes, time).unwrap();
    let other = TopicName::new("other").unwrap();
    let live = Put { delay_ms: Some(3_600_000), ..Put::new(other.clone(), "x") };
    for _ in 0..4 {
        put(&mut driver, time, 2_000, 3_600_000);
        step(&mut driver, time, Command::Put(vec![live.clone(); 1_000]));
        flush(&mut driver, time);
    }
    let bytes_before = driver.store.runs().1;
    step(&mut driver, time, Command::Purge(topic().into()));
    wait_a_minute(&mut driver, &mut time);
    let bytes = driver.store.runs().1;
    assert!(bytes * 5 < bytes_before * 2, "{bytes} of {bytes_before} bytes");
    // The same after a start, which knows of the purge only by its checkpoint.
    put(&mut driver, time, 6_000, 3_600_000);
    flush(&mut driver, time);
    let bytes_before = driver.store.runs().1;
    step(&mut driver, time, Command::Purge(topic().into()));
    flush(&mut driver, time);
    drop(driver);
    let mut driver = Driver::open(&disk, sizes, time).unwrap();
    wait_a_minute(&mut driver, &mut time);
    let bytes = driver.store.runs().1;
    assert!(bytes * 5 < bytes_before * 3, "{bytes} of {bytes_before} bytes");
    let stats = step(&mut driver, time, Command::Stats(Stats { topic: Some(other) }));
    let Reply::Stats(stats) = stats else { panic!("{stats:?}") };
    assert_eq!(stats.delayed, 4_000);
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
    wait_a_minute(&mut driver, &mut time);
    let (runs, bytes) = driver.store.runs();
    assert!(runs <= 2 && bytes * 3 < bytes_before, "{runs} runs, {bytes} of {bytes_before} bytes");
    assert!(driver.store.journal_bytes() < 8 << 10, "{} bytes", driver.store.journal_bytes());
    let stats = step(&mut driver, time, Command::Stats(Stats { topic: Some(topic()) }));
    let Reply::Stats(stats) = stats else { panic!("{stats:?}") };
    assert_eq!(stats.delayed, kept.len() as u64);
    let again = Driver::open(&disk, sizes, time);
    assert!(again.is_ok());
}

/// Puts jobs with long spans, takes and acks them, so many times; a flush comes at every place
/// between. `DORMOUSE_JOBS` says how many.
fn put_and_ack(driver: &mut Driver, time: SimTime, jobs: usize) {
    let century_ms = 100 * 365 * 86_400_000;
    let put = Put { expires_after_ms: Some(century_ms), ..Put::new(topic(), "x") };
    for round in 0..jobs.div_ceil(BATCH_MAX) {
        step(driver, time, Command::Put(vec![put.clone(); BATCH_MAX]));
        sync(driver, time);
        if round % 3 == 0 {
            flush(driver, time);
        }
        let (topics, max) = (vec![topic()], BATCH_MAX);
        let reserve = Reserve { topics, max, wait_ms: 0, ttr_ms: None, session: None };
        let Reply::Jobs(jobs) = step(driver, time, Command::Reserve(reserve)) else { panic!() };
        if round % 3 == 1 {
            flush(driver, time);
        }
        let acked = step(driver, time, Command::Ack(jobs.iter().map(|job| job.token).collect()));
        assert!(matches!(acked, Reply::Ended(_)), "{acked:?}");
        if driver.store.wants_freeze() {
            flush(driver, time);
        }
        driver.begin_merge(None);
        while driver.merge_action().unwrap() {}
    }
}

/// The deadline of a job that was acked once stayed until its time, in a hundred years.
#[test]
fn acked_jobs_leave_no_deadlines_behind() {
    let jobs = std::env::var("DORMOUSE_JOBS").map_or(20_000, |jobs| jobs.parse().unwrap());
    let sizes = Sizes { memtable_bytes: 1 << 20, segment_bytes: 4 << 20, merge_runs: 8 };
    let disk = SimDisk::new();
    let mut time = SimTime::new();
    let mut driver = Driver::open(&disk, sizes, time).unwrap();
    put_and_ack(&mut driver, time, jobs);
    wait_a_minute(&mut driver, &mut time);
    flush(&mut driver, time);
    wait_a_minute(&mut driver, &mut time);
    let (runs, bytes) = driver.store.runs();
    let memory = driver.store.memtable_bytes();
    assert!(
        bytes < 64 << 10 && memory < 64 << 10,
        "{runs} runs, {bytes} bytes, {memory} in memory"
    );
    for clock in [Clock::Steady, Clock::Wall] {
        let class = Class::waiting(0, clock);
        let line = TopicNo(1).deadlines();
        let count = driver.store.machine().timeline_mut().count(line, class, u64::MAX).unwrap();
        assert_eq!(count, 0, "deadlines by the {clock:?} clock");
    }
}
