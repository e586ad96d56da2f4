//! The server is killed again and again, workers are stopped and replaced: nothing is lost, and
//! nothing comes twice without a reason.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use dormouse::{Code, ConnectOptions, Job, Queue, Stopper, Tally, Worker};
use tokio::task::JoinHandle;

use crate::history::History;
use crate::server::Server;

const TTR: Duration = Duration::from_secs(2);
/// Handlers of one worker at once.
const CONCURRENCY: usize = 16;
/// How long handlers work: some are always in the midst of it when the server is killed.
const WORK: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(5),
    Duration::from_millis(50),
    Duration::from_millis(300),
];
/// Jobs of each producer at least.
const JOBS_MIN: usize = 100;
/// Long enough on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Puts jobs one by one until it is told to end; gives those that were confirmed.
async fn produce(queue: Queue, keyed: bool, is_over: Arc<AtomicBool>) -> BTreeSet<String> {
    let mut confirmed = BTreeSet::new();
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) && confirmed.len() >= JOBS_MIN {
            break;
        }
        let body = format!("{keyed}-{number}");
        let mut put = queue.put("work", body.as_str()).ttr(TTR).attempts_max(0);
        if keyed {
            // So that it is put again as long as the client tries.
            put = put.key(&body).key_ttl(2 * LONG);
        }
        match put.await {
            Ok(_) => drop(confirmed.insert(body)),
            // Without a key nobody can know; with one it was put again until it was known.
            Err(error) => assert!(!keyed && error.code == Code::Unconfirmed, "{error}"),
        }
        // Slower than the workers, so that no backlog is left at the end.
        tokio::time::sleep(Duration::from_millis(8)).await;
    }
    confirmed
}

/// A worker under way.
struct Running {
    stopper: Stopper,
    run: JoinHandle<Result<Tally, dormouse::Error>>,
}

impl Running {
    fn start(queue: &Queue, history: &History) -> Running {
        let (seen, told) = (history.clone(), history.clone());
        let worker = Worker::new(queue).concurrency(CONCURRENCY).handle("work", move |job: Job| {
            let seen = seen.clone();
            async move {
                let number = seen.start(&job);
                tokio::time::sleep(WORK[(job.id().0 % 4) as usize]).await;
                seen.returned(&job, number);
            }
        });
        let worker = worker.on_end(move |job, end| told.heard(job, end));
        Running { stopper: worker.stopper(), run: tokio::spawn(worker.run()) }
    }

    async fn stop(self) -> Tally {
        self.stopper.stop();
        self.run.await.expect("no panic").expect("it worked to the end")
    }
}

/// Waits until these were handled.
async fn until_handled(history: &History, expected: &BTreeSet<String>) {
    let deadline = Instant::now() + LONG;
    loop {
        let handled: BTreeSet<String> = history.bodies().into_iter().collect();
        if expected.is_subset(&handled) {
            return;
        }
        let missing: Vec<_> = expected.difference(&handled).collect();
        assert!(Instant::now() < deadline, "lost: {missing:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until no job is left, and none died.
async fn until_empty(queue: &Queue) {
    let deadline = Instant::now() + LONG;
    loop {
        match queue.stats("work").await {
            Ok(stats) => {
                assert_eq!(stats.counts.dead, 0, "{stats:?}");
                let left = stats.delayed + stats.ready + stats.counts.leased;
                if left == 0 {
                    return;
                }
                assert!(Instant::now() < deadline, "{stats:?}");
            }
            // Nothing is left of it.
            Err(error) => return assert_eq!(error.code, Code::NotFound, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Kills the server every so often, and replaces a worker at every second time.
async fn chaos(lasts: Duration, kill_every: Duration) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut server = Server::on(dir.path());
    let options = ConnectOptions { repeat_for: LONG, ..ConnectOptions::default() };
    let queue = Queue::connect_with(&server.url(), &options).expect("it is there");
    let (history, is_over) = (History::default(), Arc::new(AtomicBool::new(false)));
    let producers = [true, false]
        .map(|keyed| tokio::spawn(produce(queue.clone(), keyed, Arc::clone(&is_over))));
    let mut workers = vec![Running::start(&queue, &history), Running::start(&queue, &history)];
    let (mut kills, mut tallies) = (Vec::new(), Vec::new());
    let end = Instant::now() + lasts;
    while Instant::now() < end {
        tokio::time::sleep(kill_every).await;
        let killing = SystemTime::now();
        let restart = move || server.kill_and_start();
        server = tokio::task::spawn_blocking(restart).await.expect("it starts again");
        kills.push((killing, SystemTime::now()));
        if kills.len() % 2 == 0 {
            workers.push(Running::start(&queue, &history));
            tallies.push(workers.remove(0).stop().await);
        }
    }
    is_over.store(true, Ordering::Relaxed);
    for producer in producers {
        let confirmed = producer.await.expect("no panic");
        until_handled(&history, &confirmed).await;
    }
    until_empty(&queue).await;
    for worker in workers {
        tallies.push(worker.stop().await);
    }
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let (done, lost) = (sum(|tally| tally.done), sum(|tally| tally.lost));
    let verdicts = history.judge(&kills);
    eprintln!(
        "{} kills, {} workers, {done} done, {lost} lost to others",
        kills.len(),
        tallies.len()
    );
    eprintln!("{verdicts:?}");
    assert!(verdicts.wrong.is_empty(), "{:?}", verdicts.wrong);
    // Only what was given in the last moments before a kill can be forgotten.
    assert!(verdicts.forgotten <= kills.len() * 2 * CONCURRENCY, "{verdicts:?}");
    assert!(verdicts.doubled.is_empty(), "{:?}", verdicts.doubled);
    // Its worker knows of each job that it is done, even where an answer was lost; of one that came
    // again, two workers may.
    let (jobs, again) = (verdicts.jobs as u64, (verdicts.fine + verdicts.forgotten) as u64);
    assert!((jobs..=jobs + again).contains(&done), "{done} done, {verdicts:?}");
    tokio::task::spawn_blocking(move || drop(queue)).await.expect("it closes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_the_server_is_killed() {
    chaos(Duration::from_secs(5), Duration::from_millis(800)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long"]
async fn soak_nothing_is_lost_while_the_server_is_killed() {
    let seconds = std::env::var("DORMOUSE_SOAK_SECONDS")
        .map_or(120, |text| text.parse().expect("DORMOUSE_SOAK_SECONDS is a number"));
    chaos(Duration::from_secs(seconds), Duration::from_secs(2)).await;
}
