//! The accept loop of every protocol: one limit on connections, and one way to stop them all.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};

use crate::metrics::{Metrics, OpenConnection, ProtocolKind};
use crate::places::{Places, TakenPlace};
use crate::roster::{Listed, Roster};
use crate::visitor::{Address, Visitor};

/// How long to wait after a failed accept.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}: {source}; choose another address, or end what listens there")]
    Listen {
        /// The address from the configuration.
        addr: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The path cannot be listened on.
    #[error("cannot listen on {}: {source}; choose another path", path.display())]
    ListenUnix {
        /// The path from the configuration.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The system has no room for another thread.
    #[error("cannot start a thread: {0}; raise the limit of tasks, or end other programs")]
    Thread(io::Error),
}

/// Listens on an address.
pub(crate) async fn bind(addr: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(addr).await.map_err(|source| StartError::Listen { addr, source })
}

/// Accepts connections. Clones share the limit and the stop signals.
#[derive(Clone)]
pub(crate) struct Acceptor {
    pub(crate) places: Places,
    pub(crate) roster: Roster,
    pub(crate) metrics: Arc<Metrics>,
    /// True = connections finish their current requests and close.
    pub(crate) stopping: watch::Receiver<bool>,
    /// True = connections close at once.
    pub(crate) aborting: watch::Receiver<bool>,
    /// Every connection holds a clone: the channel closes with the last one.
    pub(crate) alive: mpsc::Sender<()>,
}

/// Held by a connection for as long as it is open.
pub(crate) struct Permit {
    #[expect(dead_code, reason = "its drop lets another connection in")]
    place: TakenPlace,
    #[expect(dead_code, reason = "its drop takes it out of the list")]
    listed: Listed,
    #[expect(dead_code, reason = "its drop is counted")]
    connected: OpenConnection,
    #[expect(dead_code, reason = "its drop lets a stopping server end")]
    alive: mpsc::Sender<()>,
}

/// A source of connections.
pub(crate) trait Listener: Send + 'static {
    /// The server's end of a connection.
    type Socket: Send + 'static;

    /// The next connection, and where it comes from.
    fn next(&self) -> impl Future<Output = io::Result<(Self::Socket, Address)>> + Send;

    /// Sends a last message to a client beyond the limit. Nothing is read from it before, so it
    /// may miss the message.
    fn reject(socket: &Self::Socket, message: &[u8]);
}

impl Listener for TcpListener {
    type Socket = TcpStream;

    async fn next(&self) -> io::Result<(TcpStream, Address)> {
        let (socket, from) = self.accept().await?;
        // Responses are written whole: waiting for more to send would only delay them.
        let _ = socket.set_nodelay(true);
        let _ = enable_keepalive(&socket);
        Ok((socket, from.into()))
    }

    fn reject(socket: &TcpStream, message: &[u8]) {
        let _ = socket.try_write(message);
    }
}

/// Probes find clients whose machine or network is gone: without them they look like clients that
/// wait.
fn enable_keepalive(socket: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(10))?;
    sockopt::set_tcp_keepcnt(socket, 6)?;
    sockopt::set_socket_keepalive(socket, true)
}

impl Listener for UnixListener {
    type Socket = UnixStream;

    async fn next(&self) -> io::Result<(UnixStream, Address)> {
        Ok((self.accept().await?.0, Address::Local))
    }

    fn reject(socket: &UnixStream, message: &[u8]) {
        let _ = socket.try_write(message);
    }
}

impl Acceptor {
    /// Accepts until the server stops, and serves each connection in its own task. A connection
    /// beyond the limit is closed after the message `busy`.
    pub(crate) async fn run<L, F, S>(
        self,
        listener: L,
        kind: ProtocolKind,
        busy: &'static [u8],
        serve: S,
    ) where
        L: Listener,
        F: Future<Output = ()> + Send + 'static,
        S: Fn(L::Socket, Arc<Visitor>) -> F,
    {
        let mut stopping = self.stopping.clone();
        loop {
            let accepted = tokio::select! {
                accepted = listener.next() => accepted,
                _ = stopping.wait_for(|&stopping| stopping) => return,
            };
            match accepted {
                Ok((socket, from)) => match self.admit(kind, from) {
                    Some((permit, visitor)) => {
                        let served = serve(socket, Arc::clone(&visitor));
                        tokio::spawn(async move {
                            tokio::select! {
                                biased;
                                () = served => {}
                                () = visitor.dismissed() => {}
                            }
                            drop(permit);
                        });
                    }
                    None => L::reject(&socket, busy),
                },
                Err(error) => {
                    // Out of descriptors, or a client that has left: others must still be served.
                    tracing::debug!(%error, "accept failed");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    fn admit(&self, kind: ProtocolKind, from: Address) -> Option<(Permit, Arc<Visitor>)> {
        let Some((place, visitor)) = self.places.take(kind, from) else {
            tracing::debug!(%from, "too many connections");
            self.metrics.refused(kind);
            return None;
        };
        let connected = self.metrics.connect(kind);
        let listed = self.roster.enter(Arc::clone(&visitor));
        Some((Permit { place, listed, connected, alive: self.alive.clone() }, visitor))
    }

    /// Resolves when connections must close at once.
    pub(crate) async fn aborting(&self) {
        let _ = self.aborting.clone().wait_for(|&aborting| aborting).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without keepalive a client whose machine is gone would hold its permit and its leases for
    /// ever.
    #[tokio::test]
    async fn a_dead_connection_is_detected() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, _) = listener.next().await.unwrap();
        assert_eq!(sockopt::socket_keepalive(&socket), Ok(true));
        let idle = sockopt::tcp_keepidle(&socket).unwrap();
        let asked = sockopt::tcp_keepintvl(&socket).unwrap();
        let after = idle + asked * sockopt::tcp_keepcnt(&socket).unwrap();
        assert_eq!(after, Duration::from_secs(120));
        assert!(socket.nodelay().unwrap(), "responses are sent at once");
    }
}
