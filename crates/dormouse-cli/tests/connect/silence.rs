//! A server that does not answer.

use std::time::{Duration, Instant};

use dormouse::{Code, ConnectOptions, Queue};
use rustix::process::Signal;

use crate::server::Server;

/// Long enough on a busy machine.
const LONG: Duration = Duration::from_secs(60);

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
