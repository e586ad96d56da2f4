//! The other end of a connection: is anybody still there?

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::net::TcpStream;

/// A socket that can tell whether its other end has closed it.
pub(crate) trait Peer {
    /// Asks the system now, because what the runtime heard last may be old: a client that left
    /// just before its answer came is told from one that waits only so.
    fn has_left(&self) -> bool;
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
}

#[cfg(feature = "tls")]
impl Peer for tokio_rustls::server::TlsStream<TcpStream> {
    /// Sees a connection that broke, not one that was closed in good order: that is a message.
    fn has_left(&self) -> bool {
        self.get_ref().0.has_left()
    }
}
