//! A small HTTP client that can misbehave: disconnect, send slowly, send garbage.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::schema;

/// One connection, kept open between calls.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    /// Sent with every request.
    pub(crate) headers: Vec<(String, String)>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(addr: SocketAddr) -> Client {
        let stream = BufReader::new(TcpStream::connect(addr).await.unwrap());
        Client { stream, headers: vec![("host".into(), addr.to_string())] }
    }

    /// Adds or replaces a header of all requests.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Client {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends bytes as they are.
    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).await.unwrap();
    }

    /// Sends a request without waiting for its response.
    pub(crate) async fn send(&mut self, method: &str, path: &str, kind: &str, body: &[u8]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        if !kind.is_empty() {
            head.push_str(&format!("content-type: {kind}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        self.send_raw(&bytes).await;
    }

    /// The next response; `None` if the server closed the connection.
    pub(crate) async fn receive(&mut self, has_body: bool) -> Option<Answer> {
        let status: u16 = self.line().await?.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line().await.unwrap();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        let length = answer.header("content-length").map_or(0, |text| text.parse().unwrap());
        if has_body {
            answer.body.resize(length, 0);
            self.stream.read_exact(&mut answer.body).await.unwrap();
        }
        Some(answer)
    }

    /// Sends a request and returns its response.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        path: &str,
        kind: &str,
        body: &[u8],
    ) -> Answer {
        self.send(method, path, kind, body).await;
        let answer = self.receive(method != "HEAD").await.expect("an answer");
        schema::check(method, path, &answer);
        answer
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.request("GET", path, "", b"").await
    }

    pub(crate) async fn delete(&mut self, path: &str) -> Answer {
        self.request("DELETE", path, "", b"").await
    }

    /// A POST of JSON.
    pub(crate) async fn post(&mut self, path: &str, body: Value) -> Answer {
        self.json("POST", path, body).await
    }

    pub(crate) async fn json(&mut self, method: &str, path: &str, body: Value) -> Answer {
        self.request(method, path, "application/json", body.to_string().as_bytes()).await
    }

    /// Whether the server has closed the connection.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.stream.read_u8().await.is_err()
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).await.unwrap_or(0);
        (read > 0).then(|| line.trim_end().to_owned())
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The JSON of a successful response.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        self.expect(200)
    }

    /// The JSON of a response with this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Checks for a problem with this status and code, and returns its JSON.
    #[track_caller]
    pub(crate) fn problem(self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let problem: Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["type"], format!("urn:dormouse:{code}"), "{problem}");
        assert!(problem["detail"].as_str().unwrap().len() > 10, "{problem}");
        problem
    }
}
