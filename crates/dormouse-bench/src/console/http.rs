//! A connection to the server that tells how long its answers take.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Result;

/// No answer takes so long unless the server hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Http {
    reader: BufReader<TcpStream>,
}

/// An answer, and when it came.
pub(super) struct Answer {
    pub(super) first_byte: Duration,
    pub(super) all: Duration,
    pub(super) body: Vec<u8>,
}

impl Http {
    pub(super) fn open(addr: SocketAddr) -> Result<Http> {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Http { reader: BufReader::new(stream) })
    }

    pub(super) fn get(&mut self, path: &str) -> Result<Answer> {
        self.ask("GET", path, "")
    }

    pub(super) fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        let answer = self.ask("POST", path, &body.to_string())?;
        Ok(serde_json::from_slice(&answer.body)?)
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        let began = Instant::now();
        self.send(method, path, body)?;
        self.reader.fill_buf()?;
        let first_byte = began.elapsed();
        let (status, length) = self.head()?;
        let mut body = vec![0; length.ok_or("an answer without a length")?];
        self.reader.read_exact(&mut body)?;
        if !(200..300).contains(&status) {
            let text = String::from_utf8_lossy(&body);
            return Err(format!("{method} {path}: {status} {text}").into());
        }
        Ok(Answer { first_byte, all: began.elapsed(), body })
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        Ok(self.reader.get_mut().write_all(text.as_bytes())?)
    }

    /// Status and length of an answer.
    fn head(&mut self) -> Result<(u16, Option<usize>)> {
        let (mut status, mut length, mut line) = (None, None, String::new());
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Err("the server closed the connection".into());
            }
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            match status {
                None => status = Some(text.split(' ').nth(1).unwrap_or_default().parse()?),
                Some(_) => {
                    if let Some((name, value)) = text.split_once(':')
                        && name.eq_ignore_ascii_case("content-length")
                    {
                        length = Some(value.trim().parse()?);
                    }
                }
            }
        }
        Ok((status.ok_or("an answer without a status")?, length))
    }

    /// Opens a stream: when its first byte came, and when its first event was complete.
    pub(super) fn first_event(mut self, path: &str) -> Result<(Duration, Duration)> {
        let began = Instant::now();
        self.send("GET", path, "")?;
        self.reader.fill_buf()?;
        let first_byte = began.elapsed();
        self.head()?;
        self.event()?;
        Ok((first_byte, began.elapsed()))
    }

    /// Reads the pulse until this instant, and tells how many events there were.
    pub(super) fn count_events(mut self, end: Instant) -> Result<u64> {
        self.send("GET", "/v1/pulse", "")?;
        self.head()?;
        let mut events = 0;
        while Instant::now() < end {
            self.event()?;
            events += 1;
        }
        Ok(events)
    }

    /// Reads to the end of an event's data, which is one line.
    fn event(&mut self) -> Result<()> {
        let mut line = Vec::new();
        while !line.starts_with(b"data: ") {
            line.clear();
            if self.reader.read_until(b'\n', &mut line)? == 0 {
                return Err("the stream ended".into());
            }
        }
        Ok(())
    }
}
