//! One connection: a request's bytes out, an answer's bytes in, both in buffers that stay.

use std::io;

use hyper::Uri;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::head::{self, Head};

const BUFFER_LEN: usize = 16 * 1024;

/// The server, and what every request to it begins with.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// As `host:port`, for the connection and for the `Host` header.
    authority: String,
    /// What comes before `/v1`.
    prefix: String,
    authorization: String,
}

impl Target {
    pub(super) fn new(url: &str, token: Option<&str>) -> Result<Target, String> {
        let uri: Uri = url.parse().map_err(|error| format!("{url} is not a URL: {error}"))?;
        if uri.scheme_str() != Some("http") {
            return Err(format!("{url}: the benchmark speaks only plain http://"));
        }
        let authority = uri.authority().ok_or_else(|| format!("{url} has no host"))?;
        let authorization = match token {
            Some(token) if token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                format!("Authorization: Bearer {token}\r\n")
            }
            Some(_) => return Err("a token has only visible ASCII characters".to_owned()),
            None => String::new(),
        };
        Ok(Target {
            authority: format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80)),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            authorization,
        })
    }

    /// The head of a request up to and without its content headers.
    pub(super) fn head(&self, method: &str, path: &str) -> String {
        let Target { authority, prefix, authorization } = self;
        format!("{method} {prefix}{path} HTTP/1.1\r\nHost: {authority}\r\n{authorization}")
    }

    /// So many connections, all open.
    pub(super) async fn connect(&self, count: usize) -> Result<Vec<Conn>, String> {
        let mut conns = Vec::with_capacity(count);
        for _ in 0..count {
            let mut conn = Conn::new(self);
            conn.open().await.map_err(|error| {
                format!("cannot connect to {}: {error}; is the server running?", self.authority)
            })?;
            conns.push(conn);
        }
        Ok(conns)
    }
}

/// An answer, in the buffer of its connection.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub(super) status: u16,
    pub(super) body: &'a [u8],
}

impl Answer<'_> {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// A connection that opens again by itself after it broke.
#[derive(Debug)]
pub(super) struct Conn {
    authority: String,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Conn {
    fn new(target: &Target) -> Conn {
        let authority = target.authority.clone();
        Conn { authority, stream: None, buffer: vec![0; BUFFER_LEN] }
    }

    async fn open(&mut self) -> io::Result<&mut TcpStream> {
        let stream = TcpStream::connect(&self.authority).await?;
        stream.set_nodelay(true)?;
        Ok(self.stream.insert(stream))
    }

    /// Sends a request and waits for its answer. Dropped before that, the connection is of no use
    /// any more.
    pub(super) async fn call(&mut self, request: &[u8]) -> io::Result<Answer<'_>> {
        if self.stream.is_none() {
            self.open().await?;
        }
        let exchanged = self.exchange(request).await;
        if !exchanged.as_ref().is_ok_and(|head| !head.closes) {
            self.stream = None;
        }
        let head = exchanged?;
        Ok(Answer { status: head.status, body: &self.buffer[head.head_len..head.len()] })
    }

    async fn exchange(&mut self, request: &[u8]) -> io::Result<Head> {
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        stream.write_all(request).await?;
        let (mut filled, mut head) = (0, None::<Head>);
        loop {
            let count = stream.read(&mut self.buffer[filled..]).await?;
            if count == 0 {
                return Err(io::Error::other("the server closed the connection"));
            }
            filled += count;
            if head.is_none() {
                head = head::read(&self.buffer[..filled]).map_err(io::Error::other)?;
            }
            match head {
                Some(head) if filled == head.len() => return Ok(head),
                Some(head) if filled > head.len() => {
                    return Err(io::Error::other("the answer is longer than it says"));
                }
                Some(head) if head.len() > self.buffer.len() => self.buffer.resize(head.len(), 0),
                None if filled == self.buffer.len() => self.buffer.resize(filled * 2, 0),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    fn check(url: &str, token: Option<&str>, expected: Result<&str, &str>) {
        match (Target::new(url, token), expected) {
            (Ok(target), Ok(expected)) => assert_eq!(target.head("GET", "/v1/stats"), expected),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
            (other, _) => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn a_request_begins_with_its_target() {
        let plain = "GET /v1/stats HTTP/1.1\r\nHost: localhost:7788\r\n";
        check("http://localhost:7788", None, Ok(plain));
        check("http://localhost:7788/", None, Ok(plain));
        let full = "GET /q/v1/stats HTTP/1.1\r\nHost: [::1]:80\r\nAuthorization: Bearer s3\r\n";
        check("http://[::1]/q", Some("s3"), Ok(full));
        check("https://localhost", None, Err("only plain http://"));
        check("localhost", None, Err("only plain http://"));
        check("http://a b", None, Err("not a URL"));
        check("http://a", Some("x\r\nHost: y"), Err("visible ASCII"));
    }

    /// A server that reads each request of four bytes and answers with the next list of pieces.
    async fn serve(listener: TcpListener, answers: Vec<Vec<Vec<u8>>>) {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        for pieces in answers {
            let mut request = [0; 4];
            stream.read_exact(&mut request).await.unwrap();
            assert_eq!(&request, b"ping");
            for piece in pieces {
                stream.write_all(&piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(future)
    }

    async fn pair(answers: Vec<Vec<Vec<u8>>>) -> Conn {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(serve(listener, answers));
        let conns = Target::new(&url, None).unwrap().connect(1).await;
        conns.unwrap().pop().unwrap()
    }

    #[test]
    fn an_answer_may_come_in_any_two_pieces() {
        let text = b"HTTP/1.1 201 Created\r\ncontent-length: 12\r\n\r\n{\"id\": \"42\"}";
        block_on(async {
            let halves = |split| vec![text[..split].to_vec(), text[split..].to_vec()];
            let mut conn = pair((1..text.len()).map(halves).collect()).await;
            for split in 1..text.len() {
                let answer = conn.call(b"ping").await.unwrap();
                assert_eq!(answer.status, 201, "{split}");
                assert_eq!(answer.body, b"{\"id\": \"42\"}", "{split}");
                assert!(answer.is_success());
            }
        });
    }

    #[test]
    fn an_answer_may_be_larger_than_the_buffer() {
        let body = "x".repeat(BUFFER_LEN * 5);
        let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        block_on(async {
            let mut conn = pair(vec![vec![text.clone().into()], vec![text.into()]]).await;
            for _ in 0..2 {
                assert_eq!(conn.call(b"ping").await.unwrap().body, body.as_bytes());
            }
        });
    }

    #[test]
    fn a_broken_connection_is_an_error() {
        block_on(async {
            let mut conn = pair(vec![vec![b"HTTP/1.1 200 OK\r\ncont".to_vec()]]).await;
            let error = conn.call(b"ping").await.unwrap_err();
            assert!(error.to_string().contains("closed"), "{error}");
            let refused = conn.call(b"ping").await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
            let long = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nxx".to_vec();
            let error = pair(vec![vec![long]]).await.call(b"ping").await.unwrap_err().to_string();
            assert!(error.contains("longer"), "{error}");
        });
    }
}
