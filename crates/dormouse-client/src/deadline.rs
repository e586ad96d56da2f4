//! A socket that blocks until one deadline, however many steps its peer makes of it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// See the module. The timeouts of the socket are set anew before each step.
#[derive(Clone, Copy)]
pub(crate) struct Deadline<'s> {
    pub(crate) socket: &'s TcpStream,
    pub(crate) until: Instant,
}

impl Deadline<'_> {
    /// Lets the next step take what is left of the time.
    fn set(&self) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(Some(left))?;
        self.socket.set_write_timeout(Some(left))
    }
}

impl Read for Deadline<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.set()?;
        self.socket.read(into)
    }
}

impl Write for Deadline<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.set()?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
