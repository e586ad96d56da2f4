//! Receivers that misbehave: the job is nacked in time, nothing is held, and the next one arrives.

use std::time::{Duration, Instant};

use crate::receiver::{Act, Receiver, ok};
use crate::rig::{Rig, job, to};

const TIMEOUT_MS: u64 = 400;

/// The error text after a receiver did this, and a good delivery after it.
async fn check(act: Act, expected: &str) {
    let shown = format!("{act:?}");
    let bad = act.clone();
    let receiver =
        Receiver::new(move |number, _| if number == 0 { bad.clone() } else { ok() }).await;
    let mut settings = to(&receiver.url("/"));
    settings.timeout_ms = TIMEOUT_MS;
    let rig = Rig::new(settings).await;
    let error = rig.failure(job("first")).await;
    assert!(error.contains(expected), "{shown:.80}: {error}");
    let id = rig.put(job("second"));
    rig.gone(id).await;
    assert_eq!(receiver.count(), 2, "{shown:.80}: each attempt is one request");
}

#[tokio::test]
async fn silence_and_drips_end_at_the_deadline() {
    check(Act::Silence, "timeout").await;
    check(Act::Drip(b"HTTP/1.1 200 OK\r\n".repeat(50)), "timeout").await;
}

#[tokio::test]
async fn lost_connections_are_nacked() {
    check(Act::Close, "connection failed").await;
    check(Act::Reset, "connection failed").await;
    check(Act::SendAndClose(b"HTTP/1.1 20".to_vec()), "connection failed").await;
    check(Act::SendAndClose(b"HTTP/1.1 200 OK\r\nconte".to_vec()), "connection failed").await;
}

#[tokio::test]
async fn garbage_is_nacked() {
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01"[..],
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 -200 OK\r\n\r\n",
        b"HTTP/1.1 20000 OK\r\n\r\n",
        b"+PONG\r\n\r\n",
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
    ] {
        check(Act::SendAndClose(bytes.to_vec()), "connection failed").await;
    }
    let many = "x: y\r\n".repeat(1_000);
    let many = format!("HTTP/1.1 200 OK\r\n{many}\r\n").into_bytes();
    check(Act::SendAndClose(many), "connection failed").await;
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1 << 20)).into_bytes();
    check(Act::SendAndClose(long), "connection failed").await;
}

#[tokio::test]
async fn a_storm_of_interim_answers_ends_at_the_deadline() {
    let storm = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
    check(Act::Flood(Vec::new(), storm), "timeout").await;
}

/// Where a status was said, it counts, whatever follows.
async fn check_acked(act: Act, most: Duration) -> Receiver {
    let shown = format!("{act:?}");
    let bad = act.clone();
    let receiver =
        Receiver::new(move |number, _| if number == 0 { bad.clone() } else { ok() }).await;
    let mut settings = to(&receiver.url("/"));
    settings.timeout_ms = 2_000;
    let rig = Rig::new(settings).await;
    let begun = Instant::now();
    let id = rig.put(job("first"));
    rig.gone(id).await;
    assert!(begun.elapsed() < most, "{shown:.80}: {:?}", begun.elapsed());
    let id = rig.put(job("second"));
    rig.gone(id).await;
    assert_eq!(receiver.count(), 2, "{shown:.80}");
    assert_eq!(receiver.connections(), 2, "{shown:.80}: such a connection is not used again");
    receiver
}

#[tokio::test]
async fn an_endless_reply_is_cut_off() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n".to_vec();
    let receiver = check_acked(Act::Flood(head, vec![0; 4096]), Duration::from_secs(20)).await;
    // The bound, and what sockets hold.
    assert!(receiver.sent_bytes() < 16 << 20, "{}", receiver.sent_bytes());
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let chunk = [&b"1000\r\n"[..], &[b'x'; 4096], b"\r\n"].concat();
    check_acked(Act::Flood(head, chunk), Duration::from_secs(20)).await;
}

#[tokio::test]
async fn a_reply_that_drips_or_breaks_off_counts_by_its_status() {
    let mut drip = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n".to_vec();
    drip.extend([b'x'; 10_000]);
    check_acked(Act::Drip(drip), Duration::from_secs(20)).await;
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nx".to_vec();
    check_acked(Act::SendAndClose(cut), Duration::from_secs(20)).await;
}

#[tokio::test]
async fn two_status_lines_are_one_answer() {
    let two = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n\
                HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n";
    check_acked(Act::Send(two.to_vec()), Duration::from_secs(20)).await;
}
