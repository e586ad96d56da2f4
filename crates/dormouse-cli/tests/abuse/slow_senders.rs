//! Clients that send a byte now and then: half of them in the head, half in the body.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The server's deadlines are 10 s; the rest is for a busy computer.
const CLOSED_WITHIN: Duration = Duration::from_secs(120);

pub(crate) struct SlowSenders {
    tasks: JoinSet<bool>,
}

pub(crate) async fn start(addr: SocketAddr, count: usize) -> SlowSenders {
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let stream = TcpStream::connect(addr).await.unwrap();
        tasks.spawn(send_slowly(stream, number));
    }
    SlowSenders { tasks }
}

impl SlowSenders {
    /// How many the server closed.
    pub(crate) async fn all_closed(self) -> usize {
        self.tasks.join_all().await.into_iter().filter(|closed| *closed).count()
    }
}

/// Sends bytes until the server closes; true if it did in time.
async fn send_slowly(stream: TcpStream, number: usize) -> bool {
    let (mut input, mut output) = stream.into_split();
    let sending = async {
        if number % 2 == 0 {
            let head = "POST /v1/topics/slow/jobs HTTP/1.1\r\nHost: localhost\r\n\
                        Content-Length: 900000\r\n\r\n";
            if output.write_all(head.as_bytes()).await.is_err() {
                return;
            }
        }
        let endless = "POST /v1/ack HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
        let bytes = endless.bytes().chain(std::iter::repeat(b'x'));
        for byte in bytes {
            if output.write_all(&[byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    let closed = async {
        let mut buffer = [0; 1024];
        while matches!(input.read(&mut buffer).await, Ok(read) if read > 0) {}
    };
    let either = async {
        tokio::select! {
            () = sending => {}
            () = closed => {}
        }
    };
    tokio::time::timeout(CLOSED_WITHIN, either).await.is_ok()
}
