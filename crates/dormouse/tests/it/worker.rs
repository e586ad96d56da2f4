//! A worker at work: what becomes of jobs, and how many are in hand.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dormouse::{Code, Job, JobView, Outcome, Queue, State, Tally, Worker};
use tokio::sync::Notify;

use crate::util::{SECOND, is_empty, soon, virtual_queue};

/// A worker under way, and how to end it.
struct Running {
    stopper: dormouse::Stopper,
    run: tokio::task::JoinHandle<Result<Tally, dormouse::Error>>,
}

impl Running {
    fn start(worker: Worker) -> Running {
        Running { stopper: worker.stopper(), run: tokio::spawn(worker.run()) }
    }

    async fn stop(self) -> Tally {
        self.stopper.stop();
        self.run.await.unwrap().unwrap()
    }
}

async fn view(queue: &Queue, id: dormouse::JobId) -> JobView {
    queue.get(id).await.unwrap()
}

fn error_text(view: &JobView) -> String {
    String::from_utf8(view.job.progress.error.clone().unwrap_or_default().to_vec()).unwrap()
}

#[tokio::test]
async fn handled_jobs_are_acked() {
    let queue = Queue::memory();
    for n in 0..50 {
        queue.put("t", n.to_string()).await.unwrap();
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let running = Running::start(Worker::new(&queue).concurrency(7).handle("t", {
        let seen = seen.clone();
        move |job: Job| {
            let seen = seen.clone();
            async move { seen.lock().unwrap().push(job.text().unwrap().parse::<u32>().unwrap()) }
        }
    }));
    soon("all are done", async || is_empty(&queue).await).await;
    assert_eq!(running.stop().await.done, 50);
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..50));
}

#[tokio::test]
async fn each_topic_has_its_handler_and_late_jobs_wake_it() {
    let (queue, clock) = virtual_queue();
    let note = Arc::new(Mutex::new(BTreeMap::new()));
    let handler = |name: &'static str| {
        let note = note.clone();
        move |job: Job| {
            let note = note.clone();
            async move {
                note.lock().unwrap().insert(name, job.topic().to_owned());
                Ok::<_, String>(())
            }
        }
    };
    let worker = Worker::new(&queue).handle("a", handler("first")).handle("b", handler("second"));
    let running = Running::start(worker);
    queue.put("a", "").delay(60 * SECOND).await.unwrap();
    queue.put("b", "").delay(90 * SECOND).await.unwrap();
    clock.advance(60 * SECOND);
    soon("a is done", async || note.lock().unwrap().contains_key("first")).await;
    assert!(!note.lock().unwrap().contains_key("second"));
    clock.advance(30 * SECOND);
    soon("b is done", async || note.lock().unwrap().contains_key("second")).await;
    let expected = [("first", "a".to_owned()), ("second", "b".to_owned())];
    assert_eq!(*note.lock().unwrap(), BTreeMap::from(expected));
    assert_eq!(running.stop().await.done, 2);
}

#[tokio::test]
async fn an_error_nacks_with_its_text() {
    let (queue, clock) = virtual_queue();
    let id = queue.put("t", "b").await.unwrap().id;
    let running = Running::start(Worker::new(&queue).handle("t", |job: Job| async move {
        if job.attempt() == 1 { Err("mail server is away") } else { Ok(()) }
    }));
    soon("it failed", async || view(&queue, id).await.state == State::Delayed).await;
    assert_eq!(error_text(&view(&queue, id).await), "mail server is away");
    clock.advance(SECOND);
    soon("it is done", async || queue.get(id).await.is_err()).await;
    let tally = running.stop().await;
    assert_eq!((tally.failed, tally.done), (1, 1));
}

#[tokio::test]
async fn an_outcome_kills_releases_or_delays() {
    let (queue, clock) = virtual_queue();
    let put = async |body: &str| queue.put("t", body).attempts_max(2).await.unwrap().id;
    let (killed, retried, released) = (put("kill").await, put("retry").await, put("release").await);
    let running = Running::start(Worker::new(&queue).handle("t", |job: Job| async move {
        Ok::<_, std::str::Utf8Error>(match (std::str::from_utf8(job.body())?, job.attempt()) {
            ("kill", _) => Outcome::kill("no such order"),
            ("retry", 1) => Outcome::retry_in(5 * SECOND, "later"),
            ("retry", _) => Outcome::failed("still not"),
            _ => Outcome::Release { delay: Some(Duration::MAX) },
        })
    }));
    soon("all were tried", async || queue.stats("t").await.unwrap().ready == 0).await;
    soon("one is killed", async || view(&queue, killed).await.state == State::Dead).await;
    assert_eq!(error_text(&view(&queue, killed).await), "no such order");
    soon("one waits", async || view(&queue, retried).await.state == State::Delayed).await;
    soon("one is back", async || view(&queue, released).await.state == State::Delayed).await;
    assert_eq!(view(&queue, released).await.job.progress.attempts, 0);
    clock.advance(5 * SECOND);
    soon("its last try failed", async || view(&queue, retried).await.state == State::Dead).await;
    let tally = running.stop().await;
    assert_eq!((tally.dead, tally.failed, tally.released), (2, 1, 1));
}

#[tokio::test]
async fn a_panic_nacks_with_its_text_and_ends_nothing_else() {
    let queue = Queue::memory();
    let at_once = queue.put("t", "at once").await.unwrap().id;
    let blocking = queue.put("u", "blocking").await.unwrap().id;
    let running = Running::start(
        Worker::new(&queue)
            .handle("t", |job: Job| async move {
                assert_eq!(job.text(), Ok("fine"), "not this one");
            })
            .handle_blocking("u", |_: Job| -> () { panic!("boom") }),
    );
    soon("both failed", async || queue.stats_all().await.unwrap().delayed == 2).await;
    assert!(error_text(&view(&queue, at_once).await).contains("not this one"));
    assert_eq!(error_text(&view(&queue, blocking).await), "panic: boom");
    let fine = queue.put("t", "fine").await.unwrap().id;
    soon("the next is done", async || queue.get(fine).await.is_err()).await;
    let tally = running.stop().await;
    assert_eq!((tally.panicked, tally.done), (2, 1));
}

#[tokio::test]
async fn a_panic_on_the_last_attempt_counts_as_dead() {
    let queue = Queue::memory();
    let id = queue.put("t", "b").attempts_max(1).await.unwrap().id;
    let running =
        Running::start(Worker::new(&queue).handle_blocking("t", |_: Job| -> () { panic!("boom") }));
    soon("it is dead", async || view(&queue, id).await.state == State::Dead).await;
    let tally = running.stop().await;
    assert_eq!((tally.dead, tally.panicked), (1, 0));
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_stopped_and_its_job_nacked() {
    let queue = Queue::memory();
    let id = queue.put("t", "b").attempts_max(1).await.unwrap().id;
    let worker = Worker::new(&queue).job_timeout(Duration::from_millis(20));
    let running = Running::start(worker.handle("t", |_: Job| std::future::pending::<()>()));
    soon("it is dead", async || view(&queue, id).await.state == State::Dead).await;
    assert_eq!(error_text(&view(&queue, id).await), "timed out after 20ms");
    assert_eq!(running.stop().await.dead, 1);
}

#[tokio::test]
async fn a_handler_has_its_state() {
    async fn count(seen: Arc<AtomicUsize>, job: Job) -> Result<(), dormouse::Error> {
        seen.fetch_add(job.text()?.len(), Ordering::SeqCst);
        Ok(())
    }
    let queue = Queue::memory();
    queue.put("t", "four").await.unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let running = Running::start(Worker::new(&queue).handle_with(seen.clone(), "t", count));
    soon("it is done", async || is_empty(&queue).await).await;
    assert_eq!(running.stop().await.done, 1);
    assert_eq!(seen.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn a_typed_handler_gets_the_body_and_kills_what_it_cannot_read() {
    let queue = Queue::memory();
    queue.put_json("sums", &(1, 2)).await.unwrap();
    let bad = queue.put("sums", "three").await.unwrap().id;
    let sum = Arc::new(AtomicUsize::new(0));
    let running = Running::start(Worker::new(&queue).handle_json("sums", {
        let sum = sum.clone();
        move |(a, b): (usize, usize), _: Job| {
            let sum = sum.clone();
            async move { sum.store(a + b, Ordering::SeqCst) }
        }
    }));
    soon("one is killed", async || view(&queue, bad).await.state == State::Dead).await;
    soon("one is done", async || sum.load(Ordering::SeqCst) == 3).await;
    assert!(error_text(&view(&queue, bad).await).contains("JSON"));
    let tally = running.stop().await;
    assert_eq!((tally.done, tally.dead), (1, 1));
}

#[tokio::test]
async fn the_lease_is_renewed_as_long_as_the_handler_runs() {
    let (queue, clock) = virtual_queue();
    let id = queue.put("t", "b").ttr(30 * SECOND).await.unwrap().id;
    let finish = Arc::new(Notify::new());
    let running = Running::start(Worker::new(&queue).handle("t", {
        let finish = finish.clone();
        move |_: Job| {
            let finish = finish.clone();
            async move { finish.notified().await }
        }
    }));
    soon("it is taken", async || view(&queue, id).await.state == State::Leased).await;
    for _ in 0..20 {
        let expires_at = view(&queue, id).await.due_at;
        clock.advance(10 * SECOND);
        soon("it is renewed", async || view(&queue, id).await.due_at > expires_at).await;
    }
    let progress = view(&queue, id).await.job.progress;
    assert_eq!((progress.attempts, progress.expiries), (1, 0));
    finish.notify_one();
    soon("it is done", async || queue.get(id).await.is_err()).await;
    assert_eq!(running.stop().await.done, 1);
}

#[tokio::test]
async fn real_time_renews_too() {
    let queue = Queue::memory();
    let id = queue.put("t", "b").ttr(Duration::from_millis(150)).await.unwrap().id;
    let finish = Arc::new(Notify::new());
    let running = Running::start(Worker::new(&queue).concurrency(1).handle("t", {
        let finish = finish.clone();
        move |_: Job| {
            let finish = finish.clone();
            async move { finish.notified().await }
        }
    }));
    soon("it is taken", async || view(&queue, id).await.state == State::Leased).await;
    let first_expiry = view(&queue, id).await.due_at;
    soon("it was renewed for longer than a lease", async || {
        view(&queue, id).await.due_at > first_expiry + 300
    })
    .await;
    finish.notify_one();
    soon("it is done", async || queue.get(id).await.is_err()).await;
    assert_eq!(running.stop().await.done, 1);
}

#[tokio::test]
async fn a_handler_learns_that_its_job_is_lost() {
    let (queue, clock) = virtual_queue();
    let id = queue.put("t", "b").ttr(30 * SECOND).await.unwrap().id;
    let notified = Arc::new(AtomicUsize::new(0));
    let running = Running::start(Worker::new(&queue).handle("t", {
        let notified = notified.clone();
        move |job: Job| {
            let notified = notified.clone();
            async move {
                assert!(!job.is_lost());
                job.lost().await;
                assert!(job.is_lost());
                notified.fetch_add(1, Ordering::Relaxed);
            }
        }
    }));
    soon("it is taken", async || view(&queue, id).await.state == State::Leased).await;
    queue.cancel(id).await.unwrap();
    clock.advance(10 * SECOND);
    soon("it is notified", async || notified.load(Ordering::Relaxed) == 1).await;
    assert_eq!(running.stop().await.lost, 1);
}

/// Counts how many are in hand at once.
#[derive(Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Gauge {
    fn enter(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_jobs_run_than_allowed() {
    let queue = Queue::memory();
    for n in 0..60 {
        queue.put(if n % 2 == 0 { "wide" } else { "narrow" }, "").await.unwrap();
    }
    let (all, narrow) = (Arc::new(Gauge::default()), Arc::new(Gauge::default()));
    let handler = |gauges: Vec<Arc<Gauge>>| {
        move |_: Job| {
            let gauges = gauges.clone();
            async move {
                gauges.iter().for_each(|gauge| gauge.enter());
                tokio::time::sleep(Duration::from_millis(1)).await;
                // They work side by side.
                while gauges[0].most() < 2 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                gauges.iter().for_each(|gauge| gauge.leave());
            }
        }
    };
    let worker = Worker::new(&queue)
        .concurrency(5)
        .topic_concurrency("narrow", 2)
        .handle("wide", handler(vec![all.clone()]))
        .handle("narrow", handler(vec![all.clone(), narrow.clone()]));
    let running = Running::start(worker);
    soon("all are done", async || is_empty(&queue).await).await;
    assert_eq!(running.stop().await.done, 60);
    assert!(all.most() <= 5 && narrow.most() <= 2, "{} {}", all.most(), narrow.most());
}

#[tokio::test]
async fn a_topic_with_a_free_place_is_asked_again() {
    let queue = Queue::memory();
    let gate = Arc::new(Notify::new());
    let worker = Worker::new(&queue).concurrency(4).topic_concurrency("narrow", 1);
    let running = Running::start(worker.handle("idle", |_: Job| async {}).handle("narrow", {
        let gate = gate.clone();
        move |_: Job| {
            let gate = gate.clone();
            async move { gate.notified().await }
        }
    }));
    for _ in 0..3 {
        queue.put("narrow", "").await.unwrap();
    }
    for left in [2, 1, 0] {
        soon("one is in hand", async || queue.stats("narrow").await.unwrap().ready == left).await;
        assert_eq!(queue.stats("narrow").await.unwrap().counts.leased, 1);
        gate.notify_one();
    }
    soon("all are done", async || queue.stats("narrow").await.unwrap().counts.leased == 0).await;
    assert_eq!(running.stop().await.done, 3);
}

#[tokio::test]
async fn a_worker_that_could_not_work_says_so() {
    let queue = Queue::memory();
    let nothing = |_: Job| async {};
    let text = async |worker: Worker| {
        let error = worker.run().await.unwrap_err();
        assert_eq!(error.code, Code::Invalid);
        error.text.into_owned()
    };
    assert!(text(Worker::new(&queue)).await.contains("never take a job"));
    assert!(text(Worker::new(&queue).handle("a b", nothing)).await.contains("\"a b\""));
    let twice = Worker::new(&queue).handle("t", nothing).handle("t", nothing);
    assert!(text(twice).await.contains("two handlers"));
    let none = Worker::new(&queue).handle("t", nothing).concurrency(0);
    assert!(text(none).await.contains("concurrency"));
    let other = Worker::new(&queue).handle("t", nothing).topic_concurrency("u", 1);
    assert!(text(other).await.contains("no handler"));
}
