//! A client that sends bytes and decodes replies.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::value::Value;

pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    heard: Vec<u8>,
}

/// A command as bytes.
pub(crate) fn command<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

impl Client {
    pub(crate) async fn connect(addr: SocketAddr) -> Client {
        Client::of(TcpStream::connect(addr).await.unwrap())
    }

    pub(crate) fn of(socket: TcpStream) -> Client {
        Client { socket, heard: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.unwrap();
    }

    /// The next reply; `None` if the connection is closed.
    pub(crate) async fn try_hear(&mut self) -> Option<Value> {
        loop {
            if let Some((value, length)) = Value::read(&self.heard) {
                self.heard.drain(..length);
                return Some(value);
            }
            let mut room = vec![0; 65_536];
            match self.socket.read(&mut room).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.heard.extend_from_slice(&room[..count]),
            }
        }
    }

    /// The next reply.
    pub(crate) async fn hear(&mut self) -> Value {
        self.try_hear().await.expect("the connection is closed")
    }

    /// Sends a command and returns its reply; arguments have no blanks.
    pub(crate) async fn ask(&mut self, line: &str) -> Value {
        let args: Vec<&str> = line.split_whitespace().collect();
        self.ask_all(&args).await
    }

    /// Sends a command of these arguments and returns its reply.
    pub(crate) async fn ask_all<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Value {
        self.send(&command(args)).await;
        self.hear().await
    }

    /// Puts a job; returns its id.
    pub(crate) async fn put(&mut self, line: &str) -> String {
        let answer = self.ask(&format!("PUT {line}")).await;
        answer.str().to_owned()
    }

    /// Reserves one job of a topic; returns its token.
    pub(crate) async fn take(&mut self, topic: &str) -> String {
        let jobs = self.ask(&format!("RESERVE {topic}")).await;
        let [job] = jobs.items() else { panic!("no job in {topic}: {jobs:?}") };
        job.items()[2].str().to_owned()
    }
}
