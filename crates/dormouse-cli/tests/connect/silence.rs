//! A producer and a worker whose server dies again and again lose nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dormouse::{Code, ConnectOptions, Job, Queue, Worker};
use rustix::process::Signal;

use crate::server::Server;

const KILLS: usize = 4;
const JOBS_MIN: usize = 200;
/// Long enough on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// The bodies of jobs and how often each was handled.
type Handled = Arc<Mutex<BTreeMap<String, usize>>>;

/// Puts jobs one by one until it is told to end; gives those that were confirmed.
async fn produce(queue: Queue, keyed: bool, is_over: Arc<AtomicBool>) -> BTreeSet<String> {
    let mut confirmed = BTreeSet::new();
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) && confirmed.len() >= JOBS_MIN {
            break;
        }
        let body = format!("{keyed}-{number}");
        let mut put = queue.put("work", body.as_str()).ttr(Duration::from_secs(2));
        if keyed {
            put = put.key(&body);
        }
        match put.await {
            Ok(_) => drop(confirmed.insert(body)),
            // Without a key nobody can know; with one it was put again until it was known.
            Err(error) => assert!(!keyed && error.code == Code::Unconfirmed, "{error}"),
        }
    }
    confirmed
}

async fn until_handled(handled: &Handled, expected: &BTreeSet<String>) {
    let deadline = Instant::now() + LONG;
    loop {
        let missing: Vec<String> = {
            let handled = handled.lock().expect("no panic");
            expected.iter().filter(|body| !handled.contains_key(*body)).cloned().collect()
        };
        if missing.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "lost: {missing:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_the_server_is_killed() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut server = Server::on(dir.path());
    let options = ConnectOptions { repeat_for: LONG, ..ConnectOptions::default() };
    let queue = Queue::connect_with(&server.url(), &options).expect("it is there");
    let (handled, is_over) = (Handled::default(), Arc::new(AtomicBool::new(false)));
    let worker = Worker::new(&queue).concurrency(8);
    let stopper = worker.stopper();
    let worker = {
        let handled = Arc::clone(&handled);
        worker.handle("work", move |job: Job| {
            let handled = Arc::clone(&handled);
            async move {
                let body = job.text()?.to_owned();
                *handled.lock().expect("no panic").entry(body).or_default() += 1;
                Ok::<_, dormouse::Error>(())
            }
        })
    };
    let working = tokio::spawn(worker.run());
    let producers = [true, false]
        .map(|keyed| tokio::spawn(produce(queue.clone(), keyed, Arc::clone(&is_over))));
    for _ in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let restart = move || server.kill_and_start();
        server = tokio::task::spawn_blocking(restart).await.expect("it starts again");
    }
    is_over.store(true, Ordering::Relaxed);
    for producer in producers {
        let confirmed = producer.await.expect("no panic");
        until_handled(&handled, &confirmed).await;
    }
    stopper.stop();
    let tally = working.await.expect("no panic").expect("it worked to the end");
    let deliveries: usize = handled.lock().expect("no panic").values().sum();
    let jobs = handled.lock().expect("no panic").len();
    eprintln!("{jobs} jobs, {deliveries} deliveries, {tally:?}");
    tokio::task::spawn_blocking(move || drop(queue)).await.expect("it closes");
}

/// A process that is stopped by a signal keeps its connections and answers nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_server_is_told_and_then_found_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::on(dir.path());
    let options = ConnectOptions {
        connect_timeout: Duration::from_millis(100),
        answer_timeout: Duration::from_millis(500),
        repeat_for: Duration::from_secs(2),
        ..ConnectOptions::default()
    };
    let queue = Queue::connect_with(&server.url(), &options).expect("it is there");
    let first = queue.put("work", "1").await.expect("it is put");
    server.signal(Signal::STOP);
    // The signal takes a moment.
    let error = loop {
        if let Err(error) = queue.put("work", "2").await {
            break error;
        }
    };
    assert_eq!(error.code, Code::Unconfirmed, "{error}");
    assert!(error.text.contains("in time") && error.text.contains(&server.url()), "{error}");
    let error = queue.get(first.id).await.expect_err("nobody answers");
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert!(error.text.contains("does not answer"), "{error}");
    server.signal(Signal::CONT);
    let deadline = Instant::now() + LONG;
    while let Err(error) = queue.get(first.id).await {
        assert!(error.code == Code::Unavailable && Instant::now() < deadline, "{error}");
    }
    tokio::task::spawn_blocking(move || drop(queue)).await.expect("it closes");
}
