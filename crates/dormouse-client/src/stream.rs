//! A socket that never blocks, with or without TLS.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

#[cfg(feature = "tls")]
use crate::tls::TlsSession;

/// How far a write got.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// All of it is with the operating system.
    All,
    /// So many bytes are; the socket takes no more now.
    Part(usize),
}

/// An open connection. One thread reads, one at a time writes.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: TcpStream,
    #[cfg(feature = "tls")]
    tls: Option<TlsSession>,
}

impl Stream {
    /// A socket that does not block.
    pub(crate) fn plain(socket: TcpStream) -> io::Result<Stream> {
        socket.set_nonblocking(true)?;
        Ok(Stream {
            socket,
            #[cfg(feature = "tls")]
            tls: None,
        })
    }

    /// The same, with a session whose handshake is done.
    #[cfg(feature = "tls")]
    pub(crate) fn encrypted(socket: TcpStream, tls: TlsSession) -> io::Result<Stream> {
        socket.set_nonblocking(true)?;
        Ok(Stream { socket, tls: Some(tls) })
    }

    /// Reads what is there: 0 = the server has closed, `WouldBlock` = nothing now.
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.read_once(into);
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Whether a read that was not filled has taken all there is. What is decrypted and not read
    /// would not wake the reader.
    #[cfg_attr(not(feature = "tls"), expect(clippy::unused_self))]
    pub(crate) fn is_drained(&self) -> bool {
        #[cfg(feature = "tls")]
        if self.tls.is_some() {
            return false;
        }
        true
    }

    fn read_once(&self, into: &mut [u8]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return tls.read(&self.socket, into);
        }
        (&self.socket).read(into)
    }

    /// Writes as much as the socket takes.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<Written> {
        let mut at = 0;
        while at < bytes.len() {
            match self.write_once(&bytes[at..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => at += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Written::Part(at));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(if self.is_flushed()? { Written::All } else { Written::Part(at) })
    }

    fn write_once(&self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return tls.write(&self.socket, bytes);
        }
        (&self.socket).write(bytes)
    }

    /// Whether nothing is left that was encrypted and not sent.
    #[cfg_attr(not(feature = "tls"), expect(clippy::unused_self, clippy::unnecessary_wraps))]
    fn is_flushed(&self) -> io::Result<bool> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return tls.flush(&self.socket);
        }
        Ok(true)
    }

    /// Ends the sending side: the server answers what it has, and closes.
    pub(crate) fn finish(&self) {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            tls.finish(&self.socket);
        }
        // A socket that is closed already needs no closing.
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Ends the connection; the server gives back what was on its way.
    pub(crate) fn close(&self) {
        // A socket that is closed already needs no closing.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
