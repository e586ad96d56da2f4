//! Something between browser and server: a proxy that puts a path before all, or talks nonsense.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Passes requests on to a server, without the prefix before their path.
pub(crate) struct Gateway {
    pub(crate) addr: SocketAddr,
    /// While this is set, calls of the API get an answer that makes no sense.
    pub(crate) is_mad: Arc<AtomicBool>,
}

impl Gateway {
    /// It runs until the process ends.
    pub(crate) fn start(server: SocketAddr, prefix: &'static str) -> Gateway {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let is_mad = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_mad);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let flag = Arc::clone(&flag);
                std::thread::spawn(move || pass(client, server, prefix, &flag));
            }
        });
        Gateway { addr, is_mad }
    }
}

/// One request; the connection is closed after its answer.
fn pass(
    mut client: TcpStream,
    server: SocketAddr,
    prefix: &str,
    is_mad: &AtomicBool,
) -> Option<()> {
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
        return client
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .ok();
    };
    if path.starts_with("/v1/") && is_mad.load(Ordering::Relaxed) {
        let answer =
            "HTTP/1.1 200 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n<html>hello[{]}";
        return client.write_all(answer.as_bytes()).ok();
    }
    // The server knows itself by its own name, and the browser's origin is ours.
    let kept = rest.lines().filter(|line| {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        !["host", "origin", "connection"].contains(&name.as_str())
    });
    let kept: String = kept.map(|line| format!("{line}\r\n")).collect();
    let mut upstream = TcpStream::connect(server).ok()?;
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n{kept}\r\n");
    upstream.write_all(head.as_bytes()).ok()?;
    upstream.write_all(&bytes[end + 4..]).ok()?;
    let mut from_client = client.try_clone().ok()?;
    let mut to_server = upstream.try_clone().ok()?;
    std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
    std::io::copy(&mut upstream, &mut client).ok()?;
    client.shutdown(std::net::Shutdown::Both).ok()
}
