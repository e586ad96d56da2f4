//! From a URL to a connection: resolve, judge every address, connect to the very address that was
//! judged, check the certificate.
//!
//! No redirect, no proxy of the environment, no decompression, no cookies: what is not in the
//! program cannot be abused.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use dormouse_core::topic::TopicName;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::address::{AddressRules, Refusal};
use super::lookups::{LookupFault, Lookups, plain};
use super::url::{Host, PushUrl, Scheme};
use crate::limits::{
    PUSH_ADDRESSES_MAX, PUSH_ADDRESSES_TRIED_MAX, PUSH_REPLY_HEAD_BYTES_MAX, PUSH_REPLY_HEADERS_MAX,
};
use crate::metrics::PushOutcome;

/// The next address is tried if one has not answered for so long.
const NEXT_ADDRESS: Duration = Duration::from_millis(250);

/// Why a receiver was not reached.
#[derive(Debug)]
pub(super) enum Fault {
    Dns(String),
    /// Too many look-ups are under way: this says nothing about the receiver.
    Busy,
    Blocked(Refusal),
    Connect(String),
    Tls(String),
}

impl Fault {
    pub(super) fn outcome(&self) -> PushOutcome {
        match self {
            Fault::Dns(_) | Fault::Busy => PushOutcome::Dns,
            Fault::Blocked(_) => PushOutcome::Blocked,
            Fault::Connect(_) => PushOutcome::Connect,
            Fault::Tls(_) => PushOutcome::Tls,
        }
    }

    /// For the error text of the job. It names no address: whoever puts jobs must not learn what
    /// is inside.
    pub(super) fn text(&self) -> String {
        match self {
            Fault::Dns(reason) => format!("the name cannot be resolved: {reason}"),
            Fault::Busy => "too many names are being looked up".to_owned(),
            Fault::Blocked(refusal) => format!("blocked: {refusal}"),
            Fault::Connect(reason) => format!("the connection failed: {reason}"),
            Fault::Tls(reason) => format!("TLS failed: {reason}"),
        }
    }
}

/// Makes connections.
pub(super) struct Connector {
    pub(super) rules: AddressRules,
    pub(super) lookups: Lookups,
    pub(super) tls: TlsConnector,
}

/// An HTTP connection. It is closed when this is dropped.
pub(super) struct Connection {
    pub(super) sender: SendRequest<Full<Bytes>>,
    /// Of the receiver.
    pub(super) addr: Option<SocketAddr>,
    task: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connector {
    /// A new connection, for a job of a topic.
    pub(super) async fn open(&self, topic: &TopicName, url: &PushUrl) -> Result<Connection, Fault> {
        let addrs = self.judged(topic, url).await?;
        let stream = connect_first(addrs).await.map_err(|error| Fault::Connect(plain(&error)))?;
        // Requests are written whole; without it their last bytes wait for an acknowledgement.
        let _ = stream.set_nodelay(true);
        let addr = stream.peer_addr().ok();
        match url.scheme() {
            Scheme::Http => start(stream, addr).await,
            Scheme::Https => {
                let name = match url.host() {
                    Host::Name(name) => ServerName::try_from(name.to_string())
                        .map_err(|error| Fault::Tls(error.to_string()))?,
                    Host::Ip(address) => ServerName::from(*address),
                };
                let stream = self.tls.connect(name, stream).await;
                start(stream.map_err(|error| Fault::Tls(plain(&error)))?, addr).await
            }
        }
    }

    /// The addresses of a host. If one of them is refused, all are: mixed answers are the attack.
    async fn judged(&self, topic: &TopicName, url: &PushUrl) -> Result<Vec<SocketAddr>, Fault> {
        let addresses = match url.host() {
            Host::Ip(address) => Arc::from([*address]),
            Host::Name(name) => self.resolve(topic, name).await?,
        };
        let addrs: Vec<SocketAddr> =
            addresses.iter().map(|address| SocketAddr::new(*address, url.port())).collect();
        for addr in &addrs {
            self.rules.judge(url.host(), *addr, is_local).map_err(Fault::Blocked)?;
        }
        Ok(addrs)
    }

    async fn resolve(&self, topic: &TopicName, name: &Arc<str>) -> Result<Arc<[IpAddr]>, Fault> {
        let addresses = match self.lookups.resolve(topic, name).await {
            Ok(addresses) => addresses,
            Err(LookupFault::Failed(reason)) => return Err(Fault::Dns(reason)),
            Err(LookupFault::Busy) => return Err(Fault::Busy),
        };
        match addresses.len() {
            0 => Err(Fault::Dns("it has no address".to_owned())),
            count if count > PUSH_ADDRESSES_MAX => {
                Err(Fault::Dns(format!("it has {count} addresses; at most {PUSH_ADDRESSES_MAX}")))
            }
            _ => Ok(addresses),
        }
    }
}

/// Whether an address is one of this machine: only then a socket can be bound to it.
fn is_local(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Connects to the first address that answers; families alternate, as RFC 8305 says.
async fn connect_first(addrs: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut left = alternating(addrs).into_iter().take(PUSH_ADDRESSES_TRIED_MAX);
    let mut tries = JoinSet::new();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        let next = left.next();
        let may_have_more = next.is_some();
        if let Some(addr) = next {
            tries.spawn(TcpStream::connect(addr));
        }
        tokio::select! {
            tried = tries.join_next() => match tried {
                Some(Ok(Ok(stream))) => return Ok(stream),
                Some(Ok(Err(error))) => last = error,
                Some(Err(error)) => last = io::Error::other(error),
                None => return Err(last),
            },
            () = tokio::time::sleep(NEXT_ADDRESS), if may_have_more => {}
        }
    }
}

/// The order of the resolver, but the families take turns.
fn alternating(addrs: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let is_first_v6 = addrs.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addrs.into_iter().partition(|addr| addr.is_ipv6() == is_first_v6);
    let mut second = second.into_iter();
    let mut mixed = Vec::new();
    for addr in first {
        mixed.push(addr);
        mixed.extend(second.next());
    }
    mixed.extend(second);
    mixed
}

async fn start<S>(stream: S, addr: Option<SocketAddr>) -> Result<Connection, Fault>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let shaken = http1::Builder::new()
        .max_buf_size(PUSH_REPLY_HEAD_BYTES_MAX)
        .max_headers(PUSH_REPLY_HEADERS_MAX)
        .handshake(TokioIo::new(stream))
        .await;
    let (sender, connection) = shaken.map_err(|error| Fault::Connect(error.to_string()))?;
    let task = tokio::spawn(async move {
        // What went wrong is told to the request.
        let _ = connection.await;
    });
    Ok(Connection { sender, addr, task: task.abort_handle() })
}
