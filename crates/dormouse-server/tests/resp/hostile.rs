//! Hostile or broken clients.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use crate::client::{Client, command};
use crate::rig::Rig;
use crate::value::{Value, status};

/// Sends bytes that end the connection with an error.
async fn check_closed(rig: &Rig, bytes: &[u8], part: &str) {
    let mut client = rig.client().await;
    client.send(b"PING\r\n").await;
    client.send(bytes).await;
    assert_eq!(client.hear().await, status("PONG"));
    let answer = client.hear().await;
    let said = answer.error("ERR");
    assert!(said.starts_with("Protocol error: ") && said.contains(part), "{said}");
    assert_eq!(client.try_hear().await, None);
}

#[tokio::test]
async fn nonsense_closes_the_connection() {
    let rig = Rig::new().await;
    check_closed(&rig, b"*3\r\n$3\r\nPUT\r\n$1\r\nt\r\n$1073741824\r\n", "bulk length").await;
    check_closed(&rig, b"*1\r\n*1\r\n*1\r\n*1\r\n", "expected '$', got '*'").await;
    check_closed(&rig, b"*2147483647\r\n", "arguments").await;
    check_closed(&rig, b"*1\r\n$-1\r\n", "bulk length").await;
    check_closed(&rig, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP").await;
    check_closed(&rig, b"POST /v1/ack HTTP/1.1\r\n\r\nPUT t x\r\n", "HTTP").await;
    check_closed(&rig, b"Host: localhost\r\nPUT t x\r\n", "HTTP").await;
    check_closed(&rig, &[0x16, 3, 1, 2, 0, 1], "TLS").await;
    check_closed(&rig, &vec![b'x'; 70_000], "too big inline").await;
    assert!(!rig.client().await.ask("STATS t").await.error("NOTFOUND").is_empty());
}

#[tokio::test]
async fn an_incomplete_command_times_out() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.send(b"*2\r\n$4\r\nPI").await;
    let began = tokio::time::Instant::now();
    assert!(client.hear().await.error("INVALID").contains("did not come in time"));
    assert_eq!(client.try_hear().await, None);
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(10) && took < Duration::from_secs(30), "{took:?}");
}

#[tokio::test]
async fn a_million_commands_are_answered_with_bounded_memory() {
    let rig = Rig::new().await;
    let Client { socket, .. } = rig.client().await;
    let (mut reader, mut writer) = socket.into_split();
    let before = resident_bytes();
    let sending = tokio::spawn(async move {
        let pings = command(&["PING"]).repeat(1_000);
        for _ in 0..1_000 {
            writer.write_all(&pings).await.unwrap();
        }
        writer
    });
    let mut expected = 1_000_000 * b"+PONG\r\n".len();
    let mut room = vec![0; 65_536];
    let mut most = 0;
    while expected > 0 {
        let count = tokio::io::AsyncReadExt::read(&mut reader, &mut room).await.unwrap();
        assert!(count > 0);
        expected -= count;
        most = most.max(resident_bytes());
    }
    sending.await.unwrap();
    let grown = most.saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes");
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4_096
}

/// The server stops reading from a client that sends and never reads, so that its cost is bounded.
#[tokio::test]
async fn a_client_that_never_reads_is_closed() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let echoes = command(&[b"ECHO".as_slice(), &vec![b'x'; 100_000]]);
    let mut sent = 0;
    loop {
        let sending = client.socket.write(&echoes[sent % echoes.len()..]);
        match tokio::time::timeout(Duration::from_millis(500), sending).await {
            Ok(written) => sent += written.unwrap(),
            Err(_) => break,
        }
        assert!(sent < 100 << 20, "everything is taken");
    }
    assert_eq!(rig.client().await.ask("PING").await, status("PONG"));
}

/// Leases that never reach their client are given back.
#[tokio::test]
async fn a_client_that_leaves_before_reading_keeps_no_lease() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let body = vec![b'x'; 1 << 20];
    for _ in 0..12 {
        client.ask_all(&[b"PUT".as_slice(), b"t", &body]).await.str();
    }
    let mut leaver = rig.client().await;
    leaver.send(&command(&["RESERVE", "t", "MAX", "12"])).await;
    loop {
        let leased = client.ask("STATS t").await.field("leased").number();
        if leased > 0 {
            break;
        }
    }
    drop(leaver);
    loop {
        let stats = client.ask("STATS t").await;
        if stats.field("ready") == &Value::Number(12) {
            break;
        }
        tokio::task::yield_now().await;
    }
}

/// Pages are made one at a time; a client that does not read its page must not delay the others.
#[tokio::test]
async fn a_client_that_never_reads_delays_no_page() {
    let rig = Rig::new().await;
    let mut other = rig.client().await;
    other.put("small x").await;
    let body = vec![b'x'; 1_000_000];
    for _ in 0..15 {
        other.ask_all(&[b"PUT".as_slice(), b"large", &body]).await;
    }
    let mut deaf = rig.client().await;
    deaf.send(b"LIST large ready LIMIT 100\r\n").await;
    deaf.socket.readable().await.unwrap();
    // Its connection is closed after 20 s.
    let soon = Duration::from_secs(10);
    tokio::time::timeout(soon, other.ask("LIST small ready")).await.unwrap();
}

/// Unfinished commands of one token take only its share of the memory for them.
#[tokio::test]
async fn unfinished_commands_of_one_token_do_not_block_others() {
    let rig = Rig::with_tokens(&[("hog", &["*:in.*"]), ("other", &["*:out.*"])]).await;
    let part = |bytes: usize| {
        let mut part = format!("*3\r\n$3\r\nPUT\r\n$5\r\nout.x\r\n${bytes}\r\n").into_bytes();
        part.resize(part.len() + bytes, b'x');
        part
    };
    let mut hogs = Vec::new();
    // The last ones fill what is left.
    for (count, bytes) in [(34, 2_000_000), (30, 50_000), (30, 5_000)] {
        for _ in 0..count {
            let mut hog = rig.client_of("hog").await;
            // It may be closed before all is sent.
            let _ = hog.socket.write_all(&part(bytes)).await;
            hogs.push(hog);
        }
    }
    let mut other = rig.client_of("other").await;
    other.send(&part(60_000)).await;
    other.send(b"\r\n").await;
    other.hear().await.str();
}
