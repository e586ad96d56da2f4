//! A server of canned answers that remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// Long enough that only what never comes is not waited for.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A request that came in.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: String,
    /// How many came before it with the same method and path.
    pub(crate) nth: usize,
}

impl ReceivedRequest {
    /// Method and path.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }
}

/// How to respond to a request.
pub(crate) enum Response {
    /// Status and body.
    Reply(u16, String),
    /// No answer until the client leaves.
    Hold,
    /// No answer until the client leaves, and then this one, as if it had been on its way.
    Late(u16, String),
    /// Close the connection.
    Close,
    /// These bytes, whatever they are, then close.
    Raw(String),
}

/// 200 with a body.
pub(crate) fn ok(body: &str) -> Response {
    Response::Reply(200, body.to_owned())
}

/// A problem.
pub(crate) fn problem(status: u16, code: &str) -> Response {
    let body = serde_json::json!({
        "type": format!("urn:dormouse:{code}"), "title": code, "status": status, "code": code,
        "detail": format!("detail of {code}"), "retryable": false,
    });
    Response::Reply(status, body.to_string())
}

#[derive(Default)]
struct Log {
    seen: Mutex<Vec<ReceivedRequest>>,
    more: Condvar,
}

/// The server.
pub(crate) struct Fake {
    pub(crate) url: String,
    log: Arc<Log>,
}

impl Fake {
    /// Answers each request by `answer`.
    pub(crate) fn start(
        answer: impl Fn(&ReceivedRequest) -> Response + Send + Sync + 'static,
    ) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log = Arc::new(Log::default());
        let answer: Arc<dyn Fn(&ReceivedRequest) -> Response + Send + Sync> = Arc::new(answer);
        let shared = log.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, answer) = (shared.clone(), answer.clone());
                thread::spawn(move || serve(stream.unwrap(), &log, answer.as_ref()));
            }
        });
        Fake { url, log }
    }

    /// Answers everything alike.
    pub(crate) fn always(status: u16, body: &str) -> Fake {
        let body = body.to_owned();
        Fake::start(move |_| Response::Reply(status, body.clone()))
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<ReceivedRequest> {
        self.log.seen.lock().unwrap().clone()
    }

    /// The only request.
    pub(crate) fn only(&self) -> ReceivedRequest {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].clone()
    }

    /// The requests to a path.
    pub(crate) fn to(&self, path: &str) -> Vec<ReceivedRequest> {
        self.seen().into_iter().filter(|seen| seen.path == path).collect()
    }

    /// Waits until `count` requests to a path have arrived; returns the last of them.
    pub(crate) fn wait_for(&self, path: &str, count: usize) -> ReceivedRequest {
        let guard = self.log.seen.lock().unwrap();
        let few = |seen: &mut Vec<ReceivedRequest>| {
            seen.iter().filter(|one| one.path == path).count() < count
        };
        let (seen, timeout) = self.log.more.wait_timeout_while(guard, TIMEOUT, few).unwrap();
        assert!(!timeout.timed_out(), "no {count} requests to {path}: {seen:?}");
        seen.iter().filter(|one| one.path == path).nth(count - 1).unwrap().clone()
    }
}

fn serve(
    stream: TcpStream,
    log: &Log,
    answer: &(dyn Fn(&ReceivedRequest) -> Response + Send + Sync),
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    while let Some(seen) = read(&mut reader, log) {
        let reply = match answer(&seen) {
            Response::Reply(status, body) => http(status, &body),
            Response::Close => return,
            Response::Raw(text) => {
                let _ = writer.write_all(text.as_bytes());
                return;
            }
            Response::Hold => {
                wait_for_end(&mut reader);
                return;
            }
            Response::Late(status, body) => {
                wait_for_end(&mut reader);
                let _ = writer.write_all(http(status, &body).as_bytes());
                return;
            }
        };
        if writer.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

fn wait_for_end(reader: &mut impl Read) {
    let _ = reader.read(&mut [0]);
}

fn http(status: u16, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Whatever\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

fn read(reader: &mut impl BufRead, log: &Log) -> Option<ReceivedRequest> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_ascii_lowercase() + &head;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    let line = head.split("\r\n\r\n").nth(1).unwrap().lines().next().unwrap().to_owned();
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let body = String::from_utf8(body).unwrap();
    let mut seen = log.seen.lock().unwrap();
    let nth = seen.iter().filter(|one| one.path == path && one.method == method).count();
    let one = ReceivedRequest { method, path, head, body, nth };
    seen.push(one.clone());
    log.more.notify_all();
    Some(one)
}
