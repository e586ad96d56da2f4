//! One connection: a request's bytes out, an answer's bytes in, both in buffers that stay.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::head::{self, Head};
use crate::client::Route;
use crate::exit::Failure;

const BUFFER_LEN: usize = 16 * 1024;

/// An answer, in the buffer of its connection.
#[derive(Debug)]
pub(super) struct Response<'a> {
    pub(super) status: u16,
    pub(super) body: &'a [u8],
}

impl Response<'_> {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// A connection that opens again by itself after it broke.
#[derive(Debug)]
pub(super) struct Conn {
    address: (String, u16),
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Conn {
    fn new(route: &Route) -> Conn {
        let address = (route.host.clone(), route.port);
        Conn { address, stream: None, buffer: vec![0; BUFFER_LEN] }
    }

    /// Opens this many connections.
    pub(super) async fn open_all(route: &Route, count: usize) -> Result<Vec<Conn>, Failure> {
        let mut conns = Vec::with_capacity(count);
        for _ in 0..count {
            let mut conn = Conn::new(route);
            conn.open().await.map_err(|error| {
                let (host, port) = (&route.host, route.port);
                Failure::unreachable(format!("cannot connect to {host} port {port}: {error}"))
            })?;
            conns.push(conn);
        }
        Ok(conns)
    }

    async fn open(&mut self) -> io::Result<()> {
        let stream = TcpStream::connect((self.address.0.as_str(), self.address.1)).await?;
        stream.set_nodelay(true)?;
        self.stream = Some(stream);
        Ok(())
    }

    /// Sends a request and waits for its answer. Dropped before that, the connection is of no use
    /// any more.
    pub(super) async fn call(&mut self, request: &[u8]) -> io::Result<Response<'_>> {
        if self.stream.is_none() {
            self.open().await?;
        }
        let exchanged = self.exchange(request).await;
        if !exchanged.as_ref().is_ok_and(|head| !head.closes) {
            self.stream = None;
        }
        let head = exchanged?;
        Ok(Response { status: head.status, body: &self.buffer[head.head_len..head.len()] })
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
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(serve(listener, answers));
        let address = ("127.0.0.1".to_owned(), port);
        Conn { address, stream: None, buffer: vec![0; BUFFER_LEN] }
    }

    #[test]
    fn an_answer_may_arrive_in_two_pieces() {
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
