//! The program of docs/clients/rust.md does what the page says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dormouse::{Error, Queue, State};

use crate::orders::{Shop, paid, placed, work};
use crate::process::{self, Server};

/// The page prints the file that is run here.
#[test]
fn the_page_has_these_programs() {
    let page = include_str!("../../../../docs/clients/rust.md");
    for program in [include_str!("orders.rs"), include_str!("traced.rs")] {
        assert!(page.contains(&format!("```rust\n{program}```\n")), "they differ:\n{program}");
    }
}

/// A trace crosses the wire from put to handler.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_reaches_the_handler() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = crate::server::Server::on(dir.path());
    let queue = Queue::connect(&server.url()).expect("it is there");
    let put = queue.put("orders", "42").header("traceparent", "00-1-2-01");
    put.header("tracestate", "a=1").await.expect("it is put");
    let jobs = queue.reserve("orders").await.expect("one job");
    assert_eq!(jobs[0].header("traceparent"), Some("00-1-2-01"));
    assert_eq!(jobs[0].header("tracestate"), Some("a=1"));
    jobs[0].release().await.expect("it is given back");
    let worker = crate::traced::worker(&queue);
    let (stopper, run) = (worker.stopper(), tokio::spawn(worker.run()));
    let deadline = Instant::now() + Duration::from_secs(30);
    while queue.stats("orders").await.is_ok_and(|stats| stats.counts.acks == 0) {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stopper.stop();
    assert_eq!(run.await.expect("no panic").expect("it worked").done, 1);
    tokio::task::spawn_blocking(move || drop(queue)).await.expect("it closes");
}

/// Remembers which orders it was told to cancel.
#[derive(Clone, Default)]
struct Orders(Arc<Mutex<Vec<String>>>);

impl Shop for Orders {
    async fn cancel_unless_paid(&self, order: &str) -> Result<(), Error> {
        self.0.lock().expect("no panic").push(order.to_owned());
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_that_is_not_paid_in_time_is_cancelled() {
    let args = ["--backend", "memory", "--test-clock", "--resp", "127.0.0.1:0"];
    let server = Server::start(&args);
    let line = server.process.line().expect("an address");
    let resp: SocketAddr =
        line.strip_prefix("resp listening on ").expect("an address").parse().expect("an address");
    let queue = Queue::connect(&format!("dormouse://{resp}")).expect("it is there");
    for order in ["41", "42", "42", "43"] {
        placed(&queue, order).await.expect("it is put");
    }
    assert!(paid(&queue, "41").await.expect("an answer"));
    let advance = |by: &str| {
        let body = format!("{{\"by\": \"{by}\"}}");
        let reply = process::request(server.addr, "POST", "/v1/test/advance", &[], &body);
        assert_eq!(reply.status, 200, "{reply:?}");
    };
    advance("29m");
    let view = queue.get_key("order-timeouts", "42").await.expect("it is there");
    assert_eq!(view.state, State::Delayed);
    advance("1m");
    // A worker has 42 when its payment comes.
    let jobs = queue.reserve("order-timeouts").await.expect("one job");
    assert_eq!(jobs[0].text(), Ok("42"));
    assert!(!paid(&queue, "42").await.expect("an answer"));
    jobs[0].release().await.expect("it is given back");
    let orders = Orders::default();
    let working = {
        let (queue, orders) = (queue.clone(), orders.clone());
        tokio::spawn(async move { work(&queue, orders).await })
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    while queue.stats("order-timeouts").await.is_ok_and(|stats| stats.counts.acks < 2) {
        assert!(Instant::now() < deadline, "{:?}", orders.0);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A worker has several at a time: they may end in any order.
    orders.0.lock().expect("no panic").sort();
    assert_eq!(*orders.0.lock().expect("no panic"), ["42", "43"]);
    assert!(!paid(&queue, "43").await.expect("an answer"));
    working.abort();
    let _ = working.await;
    tokio::task::spawn_blocking(move || drop(queue)).await.expect("it closes");
}
