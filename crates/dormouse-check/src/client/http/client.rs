//! HTTP/1.1 as far as the API needs it: a request with its length, an answer with its length, one
//! after the other over connections that stay open.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::client::pool::Connection;

const CHUNK_BYTES: usize = 64 << 10;
const HEAD_BYTES_MAX: usize = 64 << 10;

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: &'static str,
    /// With its query.
    pub(super) path: String,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Response {
    pub(super) fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// One connection.
pub(super) struct HttpConnection {
    stream: TcpStream,
    host: SocketAddr,
    /// Bytes beyond the last response: none, if the server is right.
    read: Vec<u8>,
    is_open: bool,
}

impl Connection for HttpConnection {
    type Call = Call;
    type Response = Response;

    fn socket(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    fn is_open(&self) -> bool {
        self.is_open
    }

    fn exchange(&mut self, call: &Call) -> io::Result<Response> {
        let Call { method, path, content_type, body } = call;
        let mut bytes = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: {content_type}\r\n\
             content-length: {}\r\n\r\n",
            self.host,
            body.len()
        )
        .into_bytes();
        bytes.extend_from_slice(body);
        self.stream.write_all(&bytes)?;
        self.read_response()
    }
}

impl HttpConnection {
    pub(super) fn new(stream: TcpStream, host: SocketAddr) -> HttpConnection {
        HttpConnection { stream, host, read: Vec::new(), is_open: true }
    }

    fn read_response(&mut self) -> io::Result<Response> {
        let head_bytes = loop {
            if let Some(at) = self.read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at + 4;
            }
            if self.read.len() > HEAD_BYTES_MAX {
                return Err(wrong("the head of an answer does not end"));
            }
            self.read_more()?;
        };
        let head = Head::parse(&self.read[..head_bytes])?;
        while self.read.len() < head_bytes + head.length {
            self.read_more()?;
        }
        let body = self.read[head_bytes..head_bytes + head.length].to_vec();
        self.read.drain(..head_bytes + head.length);
        if !self.read.is_empty() {
            return Err(wrong("more came than the answer"));
        }
        self.is_open = !head.closes;
        Ok(Response { status: head.status, body })
    }

    fn read_more(&mut self) -> io::Result<()> {
        let before = self.read.len();
        self.read.resize(before + CHUNK_BYTES, 0);
        let read = self.stream.read(&mut self.read[before..]);
        self.read.truncate(before + *read.as_ref().unwrap_or(&0));
        match read? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended")),
            _ => Ok(()),
        }
    }
}

struct Head {
    status: u16,
    length: usize,
    closes: bool,
}

impl Head {
    fn parse(bytes: &[u8]) -> io::Result<Head> {
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("the head is not text"))?;
        let mut lines = text.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (version, status) = (words.next(), words.next().and_then(|word| word.parse().ok()));
        let (Some("HTTP/1.1"), Some(status)) = (version, status) else {
            return Err(wrong("it does not begin with HTTP/1.1 and a status"));
        };
        let header = |name: &str| {
            lines.clone().find_map(|line| {
                let (known, value) = line.split_once(':')?;
                known.eq_ignore_ascii_case(name).then(|| value.trim())
            })
        };
        let length = match header("content-length") {
            Some(value) => value.parse().map_err(|_| wrong("its length is no number"))?,
            // The one kind of answer that has no body.
            None if status == 204 => 0,
            None => return Err(wrong("it does not say how long it is")),
        };
        let closes = header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        Ok(Head { status, length, closes })
    }
}

fn wrong(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no HTTP/1.1 answer: {text}"))
}
