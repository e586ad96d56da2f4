//! WebDriver's requests: JSON over HTTP/1.1, one connection each.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// The driver waits for the browser, which may be slow on a busy machine.
const READ_TIMEOUT: Duration = Duration::from_secs(180);

pub(super) struct Wire {
    pub(super) port: u16,
}

impl Wire {
    /// The `value` of an answer.
    ///
    /// # Panics
    /// If the driver reports an error.
    pub(super) fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let answer = self.send(method, path, body).unwrap_or_else(|error| {
            panic!("the driver does not answer {method} {path}: {error}");
        });
        let value = answer["value"].clone();
        assert!(
            value["error"].is_null(),
            "{method} {path}: {} {}",
            value["error"],
            value["message"]
        );
        value
    }

    /// Ends a session. A driver that is gone has ended it already.
    pub(super) fn end(&self, session: &str) {
        let _ = self.send("DELETE", session, None);
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> std::io::Result<Value> {
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        socket.set_read_timeout(Some(READ_TIMEOUT))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let port = self.port;
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        socket.write_all(head.as_bytes())?;
        socket.write_all(body.as_bytes())?;
        read_body(socket)
    }
}

/// Reads the head, then as many bytes as it announces: the driver may keep the connection open.
fn read_body(mut socket: TcpStream) -> std::io::Result<Value> {
    let mut bytes = Vec::new();
    let mut part = [0; 64 * 1024];
    loop {
        if let Some((start, length)) = body_place(&bytes)
            && bytes.len() >= start + length
        {
            return Ok(serde_json::from_slice(&bytes[start..start + length])?);
        }
        let count = socket.read(&mut part)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&part[..count]);
    }
}

/// Where the body begins, and how long it is.
fn body_place(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })?;
    Some((end + 4, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_of_an_answer_is_found_by_its_length() {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n";
        assert_eq!(body_place(head), Some((head.len(), 2)));
        assert_eq!(body_place(&head[..head.len() - 1]), None);
        assert_eq!(body_place(b"HTTP/1.1 200 OK\r\n\r\n"), None);
    }
}
