//! Space comes back in the background, also when nothing else happens.

use dormouse_check::faults::disk::SimDisk;
use dormouse_check::harness::disk::driver::{Driver, SimTime};
use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{Put, Stats};
use dormouse_core::topic::TopicName;
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
    step(&mut driver, time, Command::Purge(topic()));
    wait_a_minute(&mut driver, &mut time);
    let bytes = driver.store.runs().1;
    assert!(bytes * 5 < bytes_before * 2, "{bytes} of {bytes_before} bytes");
    // The same after a start, which knows of the purge only by its checkpoint.
    put(&mut driver, time, 6_000, 3_600_000);
    flush(&mut driver, time);
    let bytes_before = driver.store.runs().1;
    step(&mut driver, time, Command::Purge(topic()));
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
