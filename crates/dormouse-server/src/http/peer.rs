//! The other end of a connection: is anybody still there?

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::net::TcpStream;

/// A socket that knows what became of its other end. The system is asked, because what the runtime
/// heard last may be old.
pub(crate) trait Peer {
    /// It has closed. Asked before something is sent: afterwards it may have read it and closed.
    fn has_left(&self) -> bool;

    /// It has thrown away what was sent: its system answers so for a socket that nobody reads any
    /// more. Who reads everything and closes does not cause that.
    fn has_refused(&self) -> bool;
}

impl Peer for TcpStream {
    fn has_left(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match recv(self, &mut [0_u8; 1], flags) {
            Ok((_, read)) => read == 0,
            Err(Errno::AGAIN | Errno::INTR) => false,
            Err(_) => true,
        }
    }

    fn has_refused(&self) -> bool {
        !matches!(self.take_error(), Ok(None))
    }
}

impl Peer for tokio_rustls::server::TlsStream<TcpStream> {
    /// Sees a connection that broke, not one that was closed in good order: that is a message.
    fn has_left(&self) -> bool {
        self.get_ref().0.has_left()
    }

    fn has_refused(&self) -> bool {
        self.get_ref().0.has_refused()
    }
}
