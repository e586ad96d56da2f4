//! Hostile clients against the real binary: thousands of slow ones, one thousand that wait, some
//! that never read. A normal client must not notice, and memory must stay bounded.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod connection;
mod guests;
mod leases;
mod limited;
mod locks;
mod normal;
mod polls;
mod shares;
mod slow_senders;
mod unread;
mod victim;

use std::time::Duration;

use limited::Server;

const SLOW_SENDERS: usize = 2_000;
const POLLS: usize = 1_000;
const UNREAD: usize = 24;
const RSS_MAX: u64 = 224 << 20;
/// For a normal client's p99, unless the computer is so busy that it is slow elsewhere, too.
const P99_MAX: Duration = Duration::from_millis(50);
const ALONE: Duration = Duration::from_secs(2);
const MEASURED: Duration = Duration::from_secs(8);

/// Runs a test's clients.
fn block_on<T>(clients: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(clients)
}

#[test]
fn abuse_of_a_real_process_is_bounded() {
    let server = Server::start();
    let addr = server.addr();
    // Nobody attacks this one: it shows what the computer, busy as it is, does at the same time.
    let other = Server::start();
    let beside = other.addr();
    let (alone, control, p99, slowest, closed) = block_on(async move {
        let (alone, _) = normal::measure(addr, ALONE).await;
        let slow = slow_senders::start(addr, SLOW_SENDERS).await;
        let polls = polls::start(addr, POLLS).await;
        let unread = unread::start(addr, UNREAD).await;
        let attacked = normal::measure(addr, MEASURED);
        let ((p99, slowest), (control, _)) =
            tokio::join!(attacked, normal::measure(beside, MEASURED));
        // Every slow head and body is cut off by its deadline, however many there are.
        let closed = slow.all_closed().await;
        drop((polls, unread));
        (alone, control, p99, slowest, closed)
    });
    let rss = server.rss_max();
    eprintln!(
        "abuse: normal client p99 {p99:?}, alone {alone:?}, at another server {control:?}, slowest \
         {slowest:?}; peak RSS {} MiB; \
         {closed} of {SLOW_SENDERS} slow senders cut off; memory limit: {}",
        rss >> 20,
        server.cgroup()
    );
    assert!(
        p99 < P99_MAX.max(20 * alone).max(3 * control),
        "a normal client's p99 is {p99:?}, alone {alone:?}, at another server {control:?}"
    );
    assert!(rss < RSS_MAX, "the server took {} MiB", rss >> 20);
    assert_eq!(closed, SLOW_SENDERS);
    server.stop();
    other.stop();
}
