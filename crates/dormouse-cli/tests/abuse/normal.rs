//! A client as it should be: put, reserve, ack, and how long each answer took.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::connection::{Conn, post_as};

/// Enough for a p99, however slow the computer is.
const ANSWERS_MIN: usize = 500;

/// The p99 and the slowest answer, over at least this time.
pub(crate) async fn measure(addr: SocketAddr, time: Duration) -> (Duration, Duration) {
    measure_as(None, addr, time).await
}

/// As `measure`, with the token of this name.
pub(crate) async fn measure_as(
    token: Option<&str>,
    addr: SocketAddr,
    time: Duration,
) -> (Duration, Duration) {
    let mut conn = Conn::open(addr).await;
    let mut took = Vec::new();
    let started = Instant::now();
    while started.elapsed() < time || took.len() < ANSWERS_MIN {
        let mut timed = async |request: Vec<u8>, expected: u16| {
            let asked = Instant::now();
            let (status, text) = conn.ask(&request).await;
            took.push(asked.elapsed());
            assert_eq!(status, expected, "{text}");
            text
        };
        timed(post_as(token, "/v1/topics/normal/jobs", r#"{"text": "hello"}"#), 201).await;
        let jobs = timed(post_as(token, "/v1/topics/normal/reserve", "{}"), 200).await;
        let lease = jobs.split(r#""token":""#).nth(1).and_then(|rest| rest.split('"').next());
        let lease = lease.unwrap_or_else(|| panic!("no job: {jobs}"));
        timed(post_as(token, "/v1/ack", &format!(r#"{{"token": "{lease}"}}"#)), 200).await;
    }
    took.sort_unstable();
    let p99 = took[took.len() * 99 / 100];
    (p99, *took.last().unwrap())
}
