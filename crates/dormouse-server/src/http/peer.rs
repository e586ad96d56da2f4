//! The state of a connection's other end.

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::net::TcpStream;

/// A socket that knows the state of its other end. It asks the system, because the runtime's last
/// information may be old.
pub(crate) trait Peer {
    /// The client has closed. Call it before a write: afterwards the client may have read the
    /// response before it closed.
    fn has_left(&self) -> bool;

    /// The client's system has rejected what was sent, because the client closed without reading
    /// it. A client that reads everything and then closes does not cause that.
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
    /// Detects a broken connection, not an orderly close: that is an encrypted message.
    fn has_left(&self) -> bool {
        self.get_ref().0.has_left()
    }

    fn has_refused(&self) -> bool {
        self.get_ref().0.has_refused()
    }
}
