//! A worker whose server is away for a while.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dormouse::{Code, Job, Queue, Worker};

use crate::util::soon;

const HELLO: &str = "%1\r\n$6\r\nserver\r\n$8\r\ndormouse\r\n";
const AWAY: &str = "-UNAVAILABLE the store is away\r\n";
const NOTHING: &str = "*0\r\n";

/// Answers the reserve of this number, counted from 0.
type Script = fn(usize) -> &'static str;

/// A server that answers each reserve as a test says.
struct Scripted {
    reserves: Arc<AtomicUsize>,
    queue: Queue,
}

impl Scripted {
    fn start(script: Script) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("dormouse://{}", listener.local_addr().unwrap());
        let reserves = Arc::new(AtomicUsize::new(0));
        let count = reserves.clone();
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let count = count.clone();
                thread::spawn(move || serve(stream, script, &count));
            }
        });
        Scripted { reserves, queue: Queue::connect(&url).unwrap() }
    }

    fn worker(&self, outage_max: Duration) -> Worker {
        Worker::new(&self.queue).outage_max(outage_max).handle("t", |_: Job| async {})
    }

    /// The worker asks so often, and ends well when it is stopped.
    async fn goes_on(self, outage_max: Duration, reserves_min: usize) {
        let worker = self.worker(outage_max);
        let stopper = worker.stopper();
        let run = tokio::spawn(worker.run());
        soon("it asks again", async || {
            self.reserves.load(Ordering::SeqCst) >= reserves_min || run.is_finished()
        })
        .await;
        stopper.stop();
        run.await.unwrap().expect("the outage was short");
        tokio::task::spawn_blocking(move || drop(self)).await.unwrap();
    }
}

/// Answers one connection until the client closes it.
fn serve(stream: TcpStream, script: Script, reserves: &AtomicUsize) {
    let mut stream = BufReader::new(stream);
    while let Some(verb) = read_verb(&mut stream) {
        let reply = match verb.as_str() {
            "HELLO" => HELLO,
            "RESERVE" => {
                let number = reserves.fetch_add(1, Ordering::SeqCst);
                script(number)
            }
            verb => panic!("nobody asks for {verb}"),
        };
        if stream.get_mut().write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// The first word of the next command; `None` if the client has closed.
fn read_verb(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut words = (0..read_length(stream)?).map(|_| {
        let mut word = vec![0; read_length(stream)? + 2];
        stream.read_exact(&mut word).ok()?;
        word.truncate(word.len() - 2);
        String::from_utf8(word).ok()
    });
    let verb = words.next()?;
    words.for_each(drop);
    verb
}

fn read_length(stream: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    line.trim_end().get(1..)?.parse().ok()
}

/// Without a job for longer than the longest outage, then away for a moment.
#[tokio::test]
async fn idle_time_is_no_part_of_an_outage() {
    let outage_max = Duration::from_millis(500);
    let script = |number| {
        if number > 0 {
            thread::sleep(Duration::from_millis(10));
            return NOTHING;
        }
        thread::sleep(Duration::from_secs(1));
        AWAY
    };
    Scripted::start(script).goes_on(outage_max, 2).await;
}

/// Each outage lasts until the next attempt, a second later; together they last longer than one
/// may.
#[tokio::test]
async fn an_answer_without_jobs_ends_an_outage() {
    let script = |number: usize| if number.is_multiple_of(2) { AWAY } else { NOTHING };
    Scripted::start(script).goes_on(Duration::from_millis(1_500), 6).await;
}

#[tokio::test]
async fn a_longer_outage_ends_the_worker_with_the_error() {
    let outage_max = Duration::from_millis(1_500);
    let scripted = Scripted::start(|_| AWAY);
    let told = Arc::new(AtomicUsize::new(0));
    let worker = scripted.worker(outage_max).on_error({
        let told = told.clone();
        move |_| {
            told.fetch_add(1, Ordering::SeqCst);
        }
    });
    let begun = Instant::now();
    let error = worker.run().await.unwrap_err();
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert!(begun.elapsed() >= outage_max);
    let reserves = scripted.reserves.load(Ordering::SeqCst);
    assert_eq!(told.load(Ordering::SeqCst), reserves - 1, "the last error is returned");
    tokio::task::spawn_blocking(move || drop(scripted)).await.unwrap();
}
