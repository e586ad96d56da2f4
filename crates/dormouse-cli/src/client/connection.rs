//! One connection to the server.

use std::os::fd::AsFd as _;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::tls::Connector;
use super::url::Url;
use crate::exit::Failure;

const CONNECT_MAX: Duration = Duration::from_secs(5);

/// A connection, and the task that drives it.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    socket: std::net::TcpStream,
}

/// Why a request was not answered.
pub(super) struct SendError {
    pub(super) error: hyper::Error,
    /// The request, if nothing of it was sent.
    pub(super) unsent: Option<hyper::Request<Full<Bytes>>>,
}

impl Connection {
    pub(super) async fn open(url: &Url, tls: Option<&Connector>) -> Result<Connection, Failure> {
        match timeout(CONNECT_MAX, connect(url, tls)).await {
            Ok(connection) => connection,
            Err(_) => {
                let limit_s = CONNECT_MAX.as_secs();
                let text = format!("cannot reach {url} within {limit_s} s");
                Err(Failure::unreachable(format!("{text}; is the server running?")))
            }
        }
    }

    /// Sends a request; the error returns a request that was not sent.
    pub(super) async fn send(
        &mut self,
        request: hyper::Request<Full<Bytes>>,
    ) -> Result<hyper::Response<Incoming>, SendError> {
        self.sender.try_send_request(request).await.map_err(|mut lost| {
            let unsent = lost.take_message();
            SendError { error: lost.into_error(), unsent }
        })
    }

    /// Whether it can take another request.
    pub(super) async fn is_usable(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    /// A handle to the socket, to shut it down from outside.
    pub(super) fn socket(&self) -> Result<std::net::TcpStream, Failure> {
        self.socket.try_clone().map_err(|error| Failure::new(format!("no socket left: {error}")))
    }
}

async fn connect(url: &Url, tls: Option<&Connector>) -> Result<Connection, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::unreachable(format!("cannot reach {url}: {error}; is the server running?"))
    };
    let stream =
        TcpStream::connect((url.host.as_str(), url.port)).await.map_err(|error| failed(&error))?;
    stream.set_nodelay(true).map_err(|error| failed(&error))?;
    let socket = stream.as_fd().try_clone_to_owned().map_err(|error| failed(&error))?.into();
    let sender = match tls {
        Some(tls) => {
            let stream = tls.connect(url, stream).await?;
            handshake(stream).await
        }
        None => handshake(stream).await,
    };
    let sender = sender.map_err(|error| failed(&error))?;
    Ok(Connection { sender, socket })
}

async fn handshake<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, hyper::Error>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // An error of the connection is also an error of its current request.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}
