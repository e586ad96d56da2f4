//! A client that sends bytes and expects bytes.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Time after which a reply is considered missing.
const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Socket for S {}

pub(crate) struct Client {
    socket: Box<dyn Socket>,
    heard: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(addr: SocketAddr) -> Client {
        let socket = TcpStream::connect(addr).await.unwrap();
        socket.set_nodelay(true).unwrap();
        Client::over(socket)
    }

    pub(crate) fn over(socket: impl Socket + 'static) -> Client {
        Client { socket: Box::new(socket), heard: Vec::new() }
    }

    pub(crate) async fn say(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.unwrap();
    }

    /// Shuts down its sending side.
    pub(crate) async fn fall_silent(&mut self) {
        self.socket.shutdown().await.unwrap();
    }

    /// Sends lines and expects lines, both without the last end.
    #[track_caller]
    pub(crate) fn ask<'a>(
        &'a mut self,
        said: &'a str,
        heard: &'a str,
    ) -> impl Future<Output = ()> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let said = said.replace('\n', "\r\n") + "\r\n";
            self.say(said.as_bytes()).await;
            self.hear_at(heard, place).await;
        }
    }

    /// Expects lines, without the last end.
    #[track_caller]
    pub(crate) fn hear<'a>(&'a mut self, heard: &'a str) -> impl Future<Output = ()> + 'a {
        let place = std::panic::Location::caller();
        async move { self.hear_at(heard, place).await }
    }

    async fn hear_at(&mut self, heard: &str, place: &std::panic::Location<'_>) {
        let expected = heard.replace('\n', "\r\n") + "\r\n";
        let expected = expected.as_bytes();
        while self.heard.len() < expected.len() && expected.starts_with(&self.heard) {
            if !self.read(place).await {
                break;
            }
        }
        let length = self.heard.len().min(expected.len());
        let heard: Vec<u8> = self.heard.drain(..length).collect();
        let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(show(&heard), show(expected), "{place}");
    }

    /// The next line, without its end.
    pub(crate) async fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.heard.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.heard.drain(..end + 2).collect();
                return String::from_utf8_lossy(&line[..end]).into_owned();
            }
            assert!(self.read(std::panic::Location::caller()).await, "the end came first");
        }
    }

    /// Sends a command and returns its reply in YAML.
    pub(crate) async fn yaml(&mut self, said: &str) -> String {
        self.say(format!("{said}\r\n").as_bytes()).await;
        let line = self.line().await;
        let length: usize =
            line.strip_prefix("OK ").unwrap_or_else(|| panic!("{line}")).parse().unwrap();
        while self.heard.len() < length + 2 {
            assert!(self.read(std::panic::Location::caller()).await, "the end came first");
        }
        let text: Vec<u8> = self.heard.drain(..length + 2).collect();
        assert!(text.ends_with(b"\n\r\n"));
        String::from_utf8(text[..length].to_vec()).unwrap()
    }

    /// One value of such a reply.
    pub(crate) async fn stat(&mut self, said: &str, key: &str) -> String {
        let text = self.yaml(said).await;
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        value.unwrap_or_else(|| panic!("no {key} in {text}")).to_owned()
    }

    /// Expects that the server closes.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> impl Future<Output = ()> + '_ {
        let place = std::panic::Location::caller();
        async move {
            let rest = self.rest().await;
            assert_eq!(String::from_utf8_lossy(&rest), "", "{place}");
        }
    }

    /// All bytes until the server closes.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.read(std::panic::Location::caller()).await {}
        std::mem::take(&mut self.heard)
    }

    async fn read(&mut self, place: &std::panic::Location<'_>) -> bool {
        let read = timeout(TIMEOUT, self.socket.read_buf(&mut self.heard)).await;
        match read.unwrap_or_else(|_| panic!("{place}: nothing came, only {:?}", self.heard)) {
            Ok(bytes) => bytes > 0,
            // The server may close before it has read everything.
            Err(_) => false,
        }
    }
}
