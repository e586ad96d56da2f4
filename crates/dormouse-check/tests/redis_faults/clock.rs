//! Redis' clock is wrong: ahead of the clients' by an hour, behind it, and stepped while jobs wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dormouse_check::faults::clock::Shifted;
use dormouse_check::generate::seed::seed;
use dormouse_check::harness::process::client::Client;
use dormouse_check::harness::redis::workload::Workload;
use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{LeasedJob, Put, Reserve};
use dormouse_core::topic::TopicName;
use dormouse_redis::Level;

use crate::{Took, open, work};

const HOUR_MS: i64 = 3_600_000;
/// The bench measures the lateness that is promised.
const LATE_MAX: Duration = Duration::from_millis(150);
/// Of this many jobs one is on time even on a busy machine, unless the clock is misread.
const ATTEMPTS: usize = 10;

fn topic() -> TopicName {
    TopicName::new("clock").expect("a good name")
}

fn put(client: &Client, put: Put) {
    match client.call_one(Command::Put(vec![put])) {
        Ok(Reply::Put(items)) => assert!(items[0].is_ok(), "{items:?}"),
        other => panic!("{other:?}"),
    }
}

/// Waits for one job and acks it.
fn take(client: &Client, wait_ms: i64) -> Option<LeasedJob> {
    let reserve = Reserve { topics: vec![topic()], max: 1, wait_ms, ttr_ms: None, session: None };
    let job = match client.call_one(Command::Reserve(reserve)) {
        Ok(Reply::Jobs(mut jobs)) => jobs.pop()?,
        other => panic!("{other:?}"),
    };
    let acked = client.call_one(Command::Ack(vec![job.token]));
    assert!(matches!(&acked, Ok(Reply::Ended(items)) if items[0].is_ok()), "{acked:?}");
    Some(job)
}

/// A job with a delay, and one with an instant of Redis' clock, are delivered on time.
fn on_time(clock: &Shifted, client: &Client) {
    for absolute in [false, true] {
        let mut attempts = (0..ATTEMPTS).map(|_| lateness(clock, client, absolute));
        assert!(attempts.any(|late| late <= LATE_MAX), "late by more than {LATE_MAX:?} each time");
    }
}

/// How late a job is delivered.
fn lateness(clock: &Shifted, client: &Client, absolute: bool) -> Duration {
    let delay = Duration::from_millis(200);
    let job = Put::new(topic(), "work");
    let began_at = Instant::now();
    let job = if absolute {
        let at_ms = clock.now_ms() + 200;
        Put { at_ms: Some(at_ms as i64), ..job }
    } else {
        Put { delay_ms: Some(200), ..job }
    };
    let at_ms = job.at_ms;
    put(client, job);
    let taken = take(client, 5_000).expect("it comes");
    let took = began_at.elapsed();
    assert!(took + Duration::from_millis(2) >= delay, "{took:?} is early");
    assert!(at_ms.is_none_or(|at_ms| at_ms as u64 == taken.due_at), "{taken:?}");
    assert!(taken.due_at.abs_diff(clock.now_ms()) < 60_000, "times are Redis' own: {taken:?}");
    took.saturating_sub(delay)
}

#[test]
fn a_real_process_with_a_wrong_clock_is_on_time() {
    let _took = Took::new("clock_skew");
    let clock = Shifted::start();
    let mut backends: Vec<Arc<dyn Backend>> = Vec::new();
    for ahead_ms in [0, HOUR_MS, -HOUR_MS] {
        clock.set_ms(ahead_ms);
        let backend = open(&clock.server.url(), Level::Applied, None);
        on_time(&clock, &Client::new(&backend));
        backends.push(backend);
    }
    // Backends that knew another time are right as well, at once.
    for backend in &backends {
        on_time(&clock, &Client::new(backend));
    }
}

#[test]
fn a_real_process_whose_clock_is_stepped_goes_on() {
    let _took = Took::new("clock_steps");
    let clock = Shifted::start();
    let backend = open(&clock.server.url(), Level::Applied, None);
    let client = Client::new(&backend);
    // Forward: what waits comes earlier, by Redis' clock in its time, though a consumer waits for
    // it that knows the old time.
    put(&client, Put { delay_ms: Some(HOUR_MS), ..Put::new(topic(), "work") });
    let waiting = Arc::clone(&backend);
    let taker = std::thread::spawn(move || take(&Client::new(&waiting), 20_000));
    work(300);
    clock.set_ms(HOUR_MS);
    let stepped_at = Instant::now();
    let job = taker.join().expect("no panic").expect("it comes");
    let took = stepped_at.elapsed();
    eprintln!("clock_steps: a waiting consumer noticed a step after {took:?}");
    assert!(took <= Duration::from_secs(12), "the timed poll notices: {took:?}");
    assert!(job.late_ms < 13_000, "{job:?}");
    on_time(&clock, &client);
    // Back: what waits comes later, nothing is lost, and new jobs are on time.
    put(&client, Put { delay_ms: Some(100), ..Put::new(topic(), "work") });
    clock.set_ms(0);
    on_time(&clock, &client);
    assert!(take(&client, 300).is_none(), "its time has not come again");
    clock.set_ms(HOUR_MS + 1_000);
    assert!(take(&client, 10_000).is_some(), "it was not lost");
    workload(&clock, backend);
}

/// A workload under steps back, which make nothing early.
fn workload(clock: &Shifted, backend: Arc<dyn Backend>) {
    let url = clock.server.url();
    let mut workload =
        Workload::new("clock_steps", seed(), vec![backend, open(&url, Level::Applied, None)]);
    clock.set_ms(0);
    let done = workload.round(|_| {
        for step in 1..=10 {
            work(100);
            // Fences grow all the same; leases last longer.
            clock.set_ms(-20 * step);
        }
    });
    done.unwrap_or_else(|text| panic!("{text}"));
    workload.finish().unwrap_or_else(|text| panic!("{text}"));
}
