//! Requests as bytes.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::limited::secret;

/// A request with a JSON body.
pub(crate) fn post(path: &str, body: &str) -> Vec<u8> {
    post_as(None, path, body)
}

/// As `post`, with the token of this name.
pub(crate) fn post_as(token: Option<&str>, path: &str, body: &str) -> Vec<u8> {
    format!("{}{body}", head_as(token, "POST", path, body.len())).into_bytes()
}

/// The head of a request.
pub(crate) fn head_as(token: Option<&str>, method: &str, path: &str, body_bytes: usize) -> String {
    let bearer = token.map(|name| format!("Authorization: Bearer {}\r\n", secret(name)));
    let bearer = bearer.unwrap_or_default();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{bearer}\
         Content-Length: {body_bytes}\r\n\r\n"
    )
}

/// A connection from another address of this machine.
pub(crate) async fn connect_from(last: u8, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0)))?;
    socket.connect(to).await
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
