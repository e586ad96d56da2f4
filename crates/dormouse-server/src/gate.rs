//! The gate of every protocol: accepts connections up to a bound that all share, and one way to
//! stop them all.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use crate::metrics::{Connected, Metrics, ProtocolKind};

/// How long to wait after the system has no room for another connection.
const NO_ROOM: Duration = Duration::from_millis(50);

/// What all connections of a server share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Gate {
    /// Connections that may still come.
    pub(crate) room: Arc<Semaphore>,
    pub(crate) metrics: Arc<Metrics>,
    /// True: finish what is under way and close.
    pub(crate) stopping: watch::Receiver<bool>,
    /// True: close now.
    pub(crate) aborting: watch::Receiver<bool>,
    /// Dropped by the last connection.
    pub(crate) alive: mpsc::Sender<()>,
}

/// A connection's place among the others, until dropped.
pub(crate) struct Place {
    #[expect(dead_code, reason = "its drop makes room")]
    permit: OwnedSemaphorePermit,
    #[expect(dead_code, reason = "its drop counts")]
    connected: Connected,
    #[expect(dead_code, reason = "its drop tells the server")]
    alive: mpsc::Sender<()>,
}

/// Where connections come from.
pub(crate) trait Listener: Send + 'static {
    /// One end of a connection.
    type Socket: Send + 'static;

    /// The next connection.
    fn next(&self) -> impl Future<Output = io::Result<Self::Socket>> + Send;

    /// Says a word to a client that cannot be served; it has not been read, so it may not see it.
    fn turn_away(socket: &Self::Socket, word: &[u8]);
}

impl Listener for TcpListener {
    type Socket = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        let (socket, _) = self.accept().await?;
        // Answers are whole messages: waiting for more to send would only delay them.
        let _ = socket.set_nodelay(true);
        let _ = notice_death(&socket);
        Ok(socket)
    }

    fn turn_away(socket: &TcpStream, word: &[u8]) {
        let _ = socket.try_write(word);
    }
}

/// A client whose machine or network is gone says nothing, like one that waits: the system asks.
fn notice_death(socket: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(10))?;
    sockopt::set_tcp_keepcnt(socket, 6)?;
    sockopt::set_socket_keepalive(socket, true)
}

impl Listener for UnixListener {
    type Socket = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }

    fn turn_away(socket: &UnixStream, word: &[u8]) {
        let _ = socket.try_write(word);
    }
}

impl Gate {
    /// Accepts until told to stop; each connection is served by a task of its own. Who comes when
    /// there is no room is told so with `crowded`.
    pub(crate) async fn run<L, F, S>(
        self,
        listener: L,
        kind: ProtocolKind,
        crowded: &'static [u8],
        serve: S,
    ) where
        L: Listener,
        F: Future<Output = ()> + Send + 'static,
        S: Fn(L::Socket) -> F,
    {
        let mut stopping = self.stopping.clone();
        loop {
            let accepted = tokio::select! {
                accepted = listener.next() => accepted,
                _ = stopping.wait_for(|&stopping| stopping) => return,
            };
            match accepted {
                Ok(socket) => match self.admit(kind) {
                    Some(place) => {
                        let served = serve(socket);
                        tokio::spawn(async move {
                            served.await;
                            drop(place);
                        });
                    }
                    None => L::turn_away(&socket, crowded),
                },
                Err(error) => {
                    // Out of descriptors, or a client that left already: others still matter.
                    tracing::debug!(%error, "accept failed");
                    tokio::time::sleep(NO_ROOM).await;
                }
            }
        }
    }

    fn admit(&self, kind: ProtocolKind) -> Option<Place> {
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            tracing::debug!("too many connections");
            self.metrics.refused(kind);
            return None;
        };
        let connected = self.metrics.connect(kind);
        Some(Place { permit, connected, alive: self.alive.clone() })
    }

    /// Resolves when connections are cut off.
    pub(crate) async fn aborting(&self) {
        let _ = self.aborting.clone().wait_for(|&aborting| aborting).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without these a client whose machine is gone would hold its place for ever, and what it was
    /// granted.
    #[tokio::test]
    async fn a_connection_that_died_is_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let socket = listener.next().await.unwrap();
        assert_eq!(sockopt::socket_keepalive(&socket), Ok(true));
        let idle = sockopt::tcp_keepidle(&socket).unwrap();
        let asked = sockopt::tcp_keepintvl(&socket).unwrap();
        let after = idle + asked * sockopt::tcp_keepcnt(&socket).unwrap();
        assert_eq!(after, Duration::from_secs(120));
        assert!(socket.nodelay().unwrap(), "answers leave at once");
    }
}
