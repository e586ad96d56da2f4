//! A receiver that does what the test says.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

/// What a receiver does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Sends these bytes and waits for the next request.
    Send(Vec<u8>),
    /// Sends these bytes after a while.
    Late(Duration, Vec<u8>),
    /// Sends these bytes and closes.
    SendAndClose(Vec<u8>),
    /// Sends these bytes, then these again and again.
    Flood(Vec<u8>, Vec<u8>),
    /// Sends a byte of these each 20 ms.
    Drip(Vec<u8>),
    /// Sends nothing.
    Silence,
    /// Closes without a word.
    Close,
    /// Resets the connection.
    Reset,
}

/// An answer with this status and these headers.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Act {
    let mut text = format!("HTTP/1.1 {status} Text\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    Act::Send(format!("{text}\r\n{body}").into_bytes())
}

pub(crate) fn ok() -> Act {
    answer(200, &[], "")
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value)
    }
}

type Script = dyn Fn(usize, &Received) -> Act + Send + Sync;

pub(crate) struct Receiver {
    pub(crate) addr: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    script: Box<Script>,
    received: Mutex<Vec<Received>>,
    connections: AtomicUsize,
    under_way: AtomicUsize,
    under_way_max: AtomicUsize,
    sent_bytes: AtomicUsize,
    forgets: AtomicBool,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Receiver {
    /// Plain HTTP; the script gets the number of the request, from 0.
    pub(crate) async fn new(
        script: impl Fn(usize, &Received) -> Act + Send + Sync + 'static,
    ) -> Receiver {
        Receiver::start(script, None).await
    }

    /// Plain HTTP; bodies are not kept.
    pub(crate) async fn forgetful(
        script: impl Fn(usize, &Received) -> Act + Send + Sync + 'static,
    ) -> Receiver {
        let receiver = Receiver::new(script).await;
        receiver.shared.forgets.store(true, SeqCst);
        receiver
    }

    pub(crate) async fn start(
        script: impl Fn(usize, &Received) -> Act + Send + Sync + 'static,
        tls: Option<TlsAcceptor>,
    ) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Box::new(script),
            received: Mutex::default(),
            connections: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            under_way_max: AtomicUsize::new(0),
            sent_bytes: AtomicUsize::new(0),
            forgets: AtomicBool::new(false),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared), tls)).abort_handle();
        Receiver { addr, shared, task }
    }

    /// The URL of a path here, by address.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.shared.received.lock().unwrap().len()
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(SeqCst)
    }

    /// The most requests that were here at the same time.
    pub(crate) fn under_way_max(&self) -> usize {
        self.shared.under_way_max.load(SeqCst)
    }

    pub(crate) fn sent_bytes(&self) -> usize {
        self.shared.sent_bytes.load(SeqCst)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, tls: Option<TlsAcceptor>) {
    // Its connections end with it.
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        shared.connections.fetch_add(1, SeqCst);
        let (shared, tls) = (Arc::clone(&shared), tls.clone());
        tasks.spawn(async move {
            match tls {
                None => serve(stream, &shared).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, &shared).await;
                    }
                }
            }
        });
    }
}

/// A stream that can be reset.
trait Stream: AsyncRead + AsyncWrite + Unpin {
    fn reset(&mut self) {}
}

impl Stream for TcpStream {
    fn reset(&mut self) {
        self.set_zero_linger().unwrap();
    }
}

impl Stream for tokio_rustls::server::TlsStream<TcpStream> {}

async fn serve(mut stream: impl Stream, shared: &Shared) {
    while let Some(mut request) = read(&mut stream).await {
        if shared.forgets.load(SeqCst) {
            request.body = Vec::new();
        }
        let under_way = shared.under_way.fetch_add(1, SeqCst) + 1;
        shared.under_way_max.fetch_max(under_way, SeqCst);
        let number = {
            let mut received = shared.received.lock().unwrap();
            received.push(request.clone());
            received.len() - 1
        };
        let goes_on = act((shared.script)(number, &request), &mut stream, shared).await;
        shared.under_way.fetch_sub(1, SeqCst);
        if !goes_on {
            return;
        }
    }
}

/// Whether the connection is used further.
async fn act(act: Act, stream: &mut impl Stream, shared: &Shared) -> bool {
    match act {
        Act::Send(bytes) => stream.write_all(&bytes).await.is_ok(),
        Act::Late(span, bytes) => {
            tokio::time::sleep(span).await;
            stream.write_all(&bytes).await.is_ok()
        }
        Act::SendAndClose(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
            false
        }
        Act::Flood(first, again) => {
            let _ = stream.write_all(&first).await;
            while stream.write_all(&again).await.is_ok() {
                shared.sent_bytes.fetch_add(again.len(), SeqCst);
            }
            false
        }
        Act::Drip(bytes) => {
            for byte in bytes {
                if stream.write_all(&[byte]).await.is_err() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            false
        }
        Act::Silence => {
            let _ = stream.read(&mut [0]).await;
            false
        }
        Act::Close => false,
        Act::Reset => {
            stream.reset();
            false
        }
    }
}

async fn read(stream: &mut impl Stream) -> Option<Received> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.lines();
    let line = lines.next().unwrap().to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers: Vec<_> = headers.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let mut request = Received { line, headers, body: Vec::new() };
    let length: usize = request.header("content-length").unwrap().parse().unwrap();
    while bytes.len() < head_end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    request.body = bytes[head_end..].to_vec();
    Some(request)
}
