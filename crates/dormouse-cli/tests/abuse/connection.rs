//! Requests as bytes.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request with a JSON body.
pub(crate) fn post(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A connection that sends a request and reads its answer.
pub(crate) struct Conn {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Conn {
    pub(crate) async fn open(addr: SocketAddr) -> Conn {
        let stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Conn { stream, buffer: Vec::new() }
    }

    /// Status and body.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> (u16, String) {
        self.stream.write_all(request).await.unwrap();
        loop {
            if let Some(answer) = self.parse() {
                return answer;
            }
            assert!(self.stream.read_buf(&mut self.buffer).await.unwrap() > 0, "closed");
        }
    }

    fn parse(&mut self) -> Option<(u16, String)> {
        let text = String::from_utf8_lossy(&self.buffer);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let length = head.to_ascii_lowercase();
        let length = length.split("content-length: ").nth(1)?.split("\r\n").next()?;
        let length: usize = length.parse().ok()?;
        let answer = (status, body.get(..length)?.to_owned());
        self.buffer.clear();
        Some(answer)
    }
}
