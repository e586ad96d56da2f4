//! Clients that ask for megabytes, again and again on one connection, and never read.

use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::connection::{Conn, post};

/// Large jobs to be listed; 16 of them are a reply's limit.
const LARGE: usize = 20;

pub(crate) async fn start(addr: SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut conn = Conn::open(addr).await;
    let body = format!(r#"{{"delay": "1h", "text": "{}"}}"#, "x".repeat(1_000_000));
    let put = post("/v1/topics/large/jobs", &body);
    for _ in 0..LARGE {
        let (status, text) = conn.ask(&put).await;
        assert_eq!(status, 201, "{text}");
    }
    let list =
        "GET /v1/topics/large/jobs?state=delayed&limit=16 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let pipeline = list.repeat(50);
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(pipeline.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    streams
}
