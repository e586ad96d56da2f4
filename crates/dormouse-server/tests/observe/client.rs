//! A minimal HTTP client.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// How long anything may take before the test fails.
const TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Sends one request on a new connection.
pub(crate) async fn request(
    addr: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answered {
    let mut socket = send(addr, method, path, headers, body).await;
    let head = read_head(&mut socket).await;
    let mut body = String::new();
    patiently(socket.read_to_string(&mut body)).await.unwrap();
    Answered { status: status(&head), head, body }
}

/// Waits, with a timeout.
async fn patiently<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, wait).await.expect("it takes too long")
}

async fn send(
    addr: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> BufReader<TcpStream> {
    let mut socket = TcpStream::connect(addr).await.unwrap();
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let size = body.len();
    let rest = format!("Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n{body}");
    socket.write_all((text + &rest).as_bytes()).await.unwrap();
    BufReader::new(socket)
}

async fn read_head(socket: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let read = patiently(socket.read_line(&mut head)).await.unwrap();
        assert!(read > 0, "the connection ended in the head: {head:?}");
    }
    head
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

/// An open event stream.
pub(crate) struct Stream {
    socket: BufReader<TcpStream>,
    pub(crate) head: String,
    /// Text that was received and not returned yet.
    text: String,
}

/// One piece of a stream, up to its blank line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) comment: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) data: String,
}

impl Told {
    /// Its number in the ring.
    pub(crate) fn number(&self) -> u64 {
        self.id.split_once('-').unwrap().1.parse().unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

impl Stream {
    /// Opens a stream and reads its first piece.
    pub(crate) async fn open(addr: SocketAddr, query: &str, headers: &[(&str, &str)]) -> Stream {
        Stream::try_open(addr, query, headers).await.unwrap_or_else(|head| panic!("{head}"))
    }

    /// As `open`; an error has the head of the response.
    pub(crate) async fn try_open(
        addr: SocketAddr,
        query: &str,
        headers: &[(&str, &str)],
    ) -> Result<Stream, String> {
        Stream::try_open_at(addr, &format!("/v1/events{query}"), headers).await
    }

    /// As `try_open`, of any stream.
    pub(crate) async fn try_open_at(
        addr: SocketAddr,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Stream, String> {
        let mut socket = send(addr, "GET", path, headers, "").await;
        let head = read_head(&mut socket).await;
        match status(&head) {
            200 => Ok(Stream { socket, head, text: String::new() }),
            _ => Err(head),
        }
    }

    /// The next piece; `None` = the server has ended the stream properly.
    pub(crate) async fn next(&mut self) -> Option<Told> {
        while !self.text.contains("\n\n") {
            let chunk = self.chunk().await;
            if chunk.is_empty() {
                assert_eq!(self.text, "");
                return None;
            }
            self.text.push_str(&chunk);
        }
        let (piece, rest) = self.text.split_once("\n\n").unwrap();
        let told = parse(piece);
        self.text = rest.to_owned();
        Some(told)
    }

    /// The next events; pieces without an event are skipped.
    pub(crate) async fn events(&mut self, count: usize) -> Vec<Told> {
        let mut events = Vec::new();
        while events.len() < count {
            let told = self.next().await.expect("the stream ended");
            if !told.event.is_empty() {
                events.push(told);
            }
        }
        events
    }

    async fn chunk(&mut self) -> String {
        let mut size = String::new();
        patiently(self.socket.read_line(&mut size)).await.unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        patiently(self.socket.read_exact(&mut chunk)).await.unwrap();
        chunk.truncate(size);
        String::from_utf8(chunk).unwrap()
    }
}

fn parse(piece: &str) -> Told {
    let mut told = Told::default();
    for line in piece.lines() {
        let (name, value) = line.split_once(':').unwrap();
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match name {
            "" => told.comment = Some(value),
            "retry" => told.retry = Some(value),
            "id" => told.id = value,
            "event" => told.event = value,
            "data" => told.data = value,
            _ => panic!("unknown field in {piece:?}"),
        }
    }
    told
}
