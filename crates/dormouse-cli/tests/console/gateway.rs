//! Something between browser and server: a proxy that puts a path before all, and may be slow,
//! silent or mad.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What happens to calls of the API.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mood {
    /// They are passed on.
    Good,
    /// They get an answer that makes no sense.
    Mad,
    /// They are taken and never answered; streams fall silent.
    Hung,
    /// They are passed on after this time.
    Slow(Duration),
    /// Changes are refused for the moment.
    Busy,
}

/// Passes requests on to a server, without the prefix before their path. `Host` and `Origin` stay
/// as the browser sent them, as behind a proxy that is set up well.
pub(crate) struct Gateway {
    pub(crate) addr: SocketAddr,
    mood: Arc<Mutex<Mood>>,
}

impl Gateway {
    /// It runs until the process ends.
    pub(crate) fn start(server: SocketAddr, prefix: &'static str) -> Gateway {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let mood = Arc::new(Mutex::new(Mood::Good));
        let shared = Arc::clone(&mood);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mood = Arc::clone(&shared);
                std::thread::spawn(move || pass(client, server, prefix, &mood));
            }
        });
        Gateway { addr, mood }
    }

    pub(crate) fn becomes(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }
}

/// Waits while the gateway is hung.
fn wait(mood: &Mutex<Mood>) {
    while *mood.lock().unwrap() == Mood::Hung {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// An answer of the gateway itself.
fn answer(client: &mut TcpStream, status: &str, body: &str) -> Option<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    client.write_all(format!("{head}{body}").as_bytes()).ok()
}

/// One request; the connection is closed after its answer.
fn pass(mut client: TcpStream, server: SocketAddr, prefix: &str, mood: &Mutex<Mood>) -> Option<()> {
    let mut bytes = Vec::new();
    let mut part = [0; 16 * 1024];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        let count = client.read(&mut part).ok().filter(|&count| count > 0)?;
        bytes.extend_from_slice(&part[..count]);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let (first, rest) = head.split_once("\r\n")?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let Some(path) = path.strip_prefix(prefix) else {
        return answer(&mut client, "404 Not Found", "");
    };
    let is_call = path.starts_with("/v1/");
    let now = *mood.lock().unwrap();
    match now {
        Mood::Mad if is_call => return answer(&mut client, "200 OK", "<html>hello[{]}"),
        Mood::Busy if is_call && method != "GET" => {
            let body = r#"{"code":"busy","detail":"later","retryable":true}"#;
            return answer(&mut client, "503 Service Unavailable", body);
        }
        Mood::Slow(time) if is_call => std::thread::sleep(time),
        Mood::Hung if is_call => wait(mood),
        _ => {}
    }
    let kept = rest.lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let kept: String = kept.map(|line| format!("{line}\r\n")).collect();
    let mut upstream = TcpStream::connect(server).ok()?;
    let head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{kept}\r\n");
    upstream.write_all(head.as_bytes()).ok()?;
    upstream.write_all(&bytes[end + 4..]).ok()?;
    let mut from_client = client.try_clone().ok()?;
    let mut to_server = upstream.try_clone().ok()?;
    std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
    loop {
        let count = upstream.read(&mut part).ok().filter(|&count| count > 0);
        let Some(count) = count else { break };
        if is_call {
            wait(mood);
        }
        client.write_all(&part[..count]).ok()?;
    }
    client.shutdown(std::net::Shutdown::Both).ok()
}
