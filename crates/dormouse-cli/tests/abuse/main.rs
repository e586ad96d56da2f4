//! Hostile clients against the real binary: thousands of slow ones, one thousand that wait, some
//! that never read. A normal client must not notice, and memory must stay bounded.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod connection;
mod limited;
mod normal;
mod polls;
mod slow_senders;
mod unread;

use std::time::Duration;

use limited::Server;

const DRIBBLERS: usize = 2_000;
const POLLS: usize = 1_000;
const DEAF: usize = 24;
const RSS_MAX: u64 = 200 << 20;
const P99_MAX: Duration = Duration::from_millis(50);
const MEASURED: Duration = Duration::from_secs(8);

#[test]
fn abuse_of_a_real_process_is_bounded() {
    let server = Server::start();
    let addr = server.addr();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (p99, slowest, answers, closed) = runtime.block_on(async move {
        let dribblers = slow_senders::start(addr, DRIBBLERS).await;
        let polls = polls::start(addr, POLLS).await;
        let deaf = unread::start(addr, DEAF).await;
        let (p99, slowest, answers) = normal::measure(addr, MEASURED).await;
        // Every slow head and body is cut off by its deadline, however many there are.
        let closed = dribblers.all_closed().await;
        drop((polls, deaf));
        (p99, slowest, answers, closed)
    });
    let rss = server.rss_max();
    eprintln!(
        "abuse: normal client p99 {p99:?}, slowest {slowest:?}, {answers} answers; peak RSS \
         {} MiB; {closed} of {DRIBBLERS} dribblers cut off; cage: {}",
        rss >> 20,
        server.cage()
    );
    assert!(answers > 500, "a normal client got only {answers} answers");
    assert!(p99 < P99_MAX, "a normal client's p99 is {p99:?}");
    assert!(rss < RSS_MAX, "the server took {} MiB", rss >> 20);
    assert_eq!(closed, DRIBBLERS);
    server.stop();
}
