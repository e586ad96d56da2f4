//! Receivers that misbehave: the job is nacked in time, nothing is held, and the next one arrives.

use std::future::Future;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use dormouse_core::op::{Purge, Put, Stats};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::receiver::{Act, Receiver, ok};
use crate::rig::{Rig, alone, job, to, topic, until};

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

/// Accepts connections and does this with each; what a request is does not matter to it.
pub(crate) async fn raw<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    addr
}

#[tokio::test]
async fn an_answer_before_the_request_ends_the_attempt() {
    let addr = raw(async |mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let mut settings = to(&format!("http://{addr}/"));
    settings.timeout_ms = TIMEOUT_MS;
    let rig = Rig::new(settings).await;
    // Whether it counts is a matter of who is faster; the job is pushed once or again.
    for _ in 0..20 {
        if let Err(error) = rig.pushed(job("x")).await {
            assert!(error.contains("connection failed") || error.contains("timeout"), "{error}");
        }
    }
}

#[tokio::test]
async fn an_answer_before_the_body_is_read_counts() {
    let addr = raw(async |mut stream| {
        let mut first = [0; 256];
        let _ = stream.read(&mut first).await;
        let no = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let _ = stream.write_all(no).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    })
    .await;
    let rig = Rig::new(to(&format!("http://{addr}/"))).await;
    let error = rig.failure(job(&"b".repeat(1 << 20))).await;
    assert!(error.starts_with("413"), "{error}");
}

/// The first bytes of ten gigabytes of zeros.
fn bomb() -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0xec, 0xc1, 1, 1];
    bytes.extend(vec![0; 40 << 10]);
    bytes
}

#[tokio::test]
async fn a_compressed_reply_is_not_unpacked() {
    let body = bomb();
    let mut reply = format!(
        "HTTP/1.1 500 No\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    reply.extend(body);
    let receiver = Receiver::new(move |_, _| Act::Send(reply.clone())).await;
    let rig = Rig::new(to(&receiver.url("/"))).await;
    let error = rig.failure(job("x")).await;
    assert!(error.starts_with("500") && error.len() <= 1_024, "{error}");
    assert_eq!(receiver.received()[0].header("accept-encoding"), Some("identity"));
}

/// KiB of memory of this process.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Other tests in this process would be measured, too.
#[test]
fn memory_is_flat_over_receivers_that_misbehave() {
    alone("hostile::alone_memory_is_flat");
}

#[tokio::test]
#[ignore = "the test above runs it in a process of its own"]
async fn alone_memory_is_flat() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1 << 20)).into_bytes();
    let acts = [
        Act::Flood(
            b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n".to_vec(),
            vec![0; 64 << 10],
        ),
        Act::Flood(Vec::new(), b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100)),
        Act::SendAndClose(long),
        Act::Silence,
        Act::Reset,
        Act::SendAndClose(
            [&b"HTTP/1.1 500 No\r\ncontent-encoding: gzip\r\n\r\n"[..], &bomb()].concat(),
        ),
    ];
    let receiver = Receiver::forgetful(move |number, _| acts[number % acts.len()].clone()).await;
    let mut settings = to(&receiver.url("/"));
    (settings.timeout_ms, settings.concurrency) = (50, 32);
    let rig = Rig::with(&[("t", settings)], |options| {
        options.breaker.wait_min = Duration::ZERO;
        options.breaker.wait_max = Duration::ZERO;
    })
    .await;
    let big = "b".repeat(64 << 10);
    let round = async || {
        for _ in 0..150 {
            rig.put(Put { attempts_max: Some(1), ..job(&big) });
        }
        let none_left = || {
            let stats = rig.call(Stats { topic: Some(topic("t")) }).unwrap();
            stats.counts.waiting + stats.counts.leased == 0
        };
        until("all were tried", none_left).await;
        rig.call(Purge::from(topic("t"))).unwrap();
    };
    round().await;
    round().await;
    let before = resident_kib();
    for _ in 0..6 {
        round().await;
    }
    let after = resident_kib();
    assert!(after < before + (24 << 10), "{before} KiB, then {after} KiB");
}
