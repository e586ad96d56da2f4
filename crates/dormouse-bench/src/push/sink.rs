//! A receiver that answers 200 to everything, and notes when it came. One thread for each
//! connection: the server has as many as it delivers at a time.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::Result;
use crate::pace::wall_us;

/// The receiver.
pub(super) struct Sink {
    addr: SocketAddr,
    count: AtomicU64,
    /// Of bodies that begin with a due time: that, and when they came.
    times: Mutex<Vec<(u64, u64)>>,
}

impl Sink {
    pub(super) fn start() -> Result<Arc<Sink>> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (count, times) = (AtomicU64::new(0), Mutex::default());
        let sink = Arc::new(Sink { addr: listener.local_addr()?, count, times });
        let shared = Arc::clone(&sink);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sink = Arc::clone(&shared);
                // A connection ends when the server closes it.
                thread::spawn(move || drop(sink.serve(stream)));
            }
        });
        Ok(sink)
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Requests that came.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn take_times(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut line, mut body) = (String::new(), Vec::new());
        while let Some(length) = head(&mut reader, &mut line)? {
            body.resize(length, 0);
            reader.read_exact(&mut body)?;
            let arrived_us = wall_us();
            let due_ms = std::str::from_utf8(&body).ok().and_then(|text| text.trim().parse().ok());
            if let Some(due_ms) = due_ms {
                let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
                times.push((due_ms, arrived_us));
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Reads a head; the length of the body, or `None` at the end of the connection.
fn head(reader: &mut impl BufRead, line: &mut String) -> std::io::Result<Option<usize>> {
    let mut length = 0;
    loop {
        line.clear();
        if reader.read_line(line)? == 0 {
            return Ok(None);
        }
        if line.trim_end().is_empty() {
            return Ok(Some(length));
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
}
