//! The HTTP client: a few open connections, one request at a time on each.

mod connection;
mod reply;
mod request;
mod route;
mod tls;
mod url;

use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use tokio::time::timeout;

use crate::Global;
use crate::exit::Failure;
use connection::Connection;
pub(crate) use reply::{Reply, UNCONFIRMED, named};
pub(crate) use request::{Request, encode, fields};
pub(crate) use route::Route;
use tls::Connector;
use url::Url;

/// How long a reply may take beyond the request's own wait.
const REPLY_AFTER: Duration = Duration::from_secs(20);
/// The largest reply that is read.
const REPLY_BYTES_MAX: usize = 64 << 20;
/// Idle connections kept for later requests.
const IDLE_MAX: usize = 16;
/// How long to wait for a reply that was sent before the request was withdrawn.
const WITHDRAW_MAX: Duration = Duration::from_secs(2);

/// A client of one server.
pub(crate) struct Client {
    url: Url,
    /// Set for an https address.
    tls: Option<Connector>,
    authorization: Option<HeaderValue>,
    idle: Mutex<Vec<Connection>>,
}

impl Client {
    pub(super) fn new(global: &Global) -> Result<Client, Failure> {
        let authorization = match token(global)? {
            None => None,
            Some(token) => {
                let mut value = HeaderValue::try_from(format!("Bearer {token}"))
                    .map_err(|_| Failure::usage("the token has characters no header can hold"))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let url = Url::parse(&global.url)?;
        let tls = match url.is_tls {
            true => Some(Connector::new(global.ca_file.as_deref())?),
            false => None,
        };
        Ok(Client { url, tls, authorization, idle: Mutex::default() })
    }

    /// Sends a request; a reply other than success is a failure.
    pub(crate) async fn call(&self, request: Request) -> Result<Reply, Failure> {
        self.exchange(request).await?.success(self.authorization.is_some())
    }

    /// Sends a request and returns the reply, whatever its status.
    pub(crate) async fn exchange(&self, request: Request) -> Result<Reply, Failure> {
        let limit = request.wait + REPLY_AFTER;
        match timeout(limit, self.exchange_unbounded(request)).await {
            Ok(reply) => reply,
            Err(_) => Err(self.no_answer(limit)),
        }
    }

    /// As `call`, but withdraws the request when `stop` is ready first. `None` means that the
    /// server has seen the withdrawal and granted nothing.
    pub(crate) async fn call_unless(
        &self,
        request: Request,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<Reply>, Failure> {
        let limit = request.wait + REPLY_AFTER;
        let mut stop = pin!(stop);
        let mut connection = tokio::select! {
            biased;
            () = &mut stop => return Ok(None),
            connection = self.connection() => connection?,
        };
        let socket = connection.socket()?;
        let answer = {
            let mut answer = pin!(timeout(limit, self.send(&mut connection, request)));
            tokio::select! {
                biased;
                reply = &mut answer => Some(reply.unwrap_or_else(|_| Err(self.no_answer(limit)))),
                () = &mut stop => {
                    // Half closed: the server sees the end, and its last reply can be read.
                    let _ = socket.shutdown(std::net::Shutdown::Write);
                    match timeout(WITHDRAW_MAX, &mut answer).await {
                        Ok(Ok(Ok(reply))) => Some(Ok(reply)),
                        _ => None,
                    }
                }
            }
        };
        let Some(reply) = answer else { return Ok(None) };
        let reply = reply?;
        self.keep(connection);
        reply.success(self.authorization.is_some()).map(Some)
    }

    /// Opens a stream, whose body the caller reads.
    pub(crate) async fn stream(&self, request: Request) -> Result<Incoming, Failure> {
        let mut connection = self.connection().await?;
        let sent = connection.send(self.http(request)?);
        let response = match timeout(REPLY_AFTER, sent).await {
            Ok(response) => response.map_err(|lost| self.broken(&lost.error))?,
            Err(_) => return Err(self.no_answer(REPLY_AFTER)),
        };
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        let reply = self.read(response).await?.success(self.authorization.is_some())?;
        Err(Failure::new(format!("{} answered {} to a stream", self.url, reply.status)))
    }

    async fn exchange_unbounded(&self, request: Request) -> Result<Reply, Failure> {
        let mut connection = self.connection().await?;
        let reply = self.send(&mut connection, request).await?;
        self.keep(connection);
        Ok(reply)
    }

    /// Sends on a connection, or on a new one if the server had closed this one.
    async fn send(&self, connection: &mut Connection, request: Request) -> Result<Reply, Failure> {
        let response = match connection.send(self.http(request)?).await {
            Ok(response) => response,
            Err(lost) => {
                let Some(unsent) = lost.unsent else { return Err(self.broken(&lost.error)) };
                *connection = Connection::open(&self.url, self.tls.as_ref()).await?;
                connection.send(unsent).await.map_err(|lost| self.broken(&lost.error))?
            }
        };
        self.read(response).await
    }

    async fn read(&self, response: hyper::Response<Incoming>) -> Result<Reply, Failure> {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, REPLY_BYTES_MAX).collect().await.map_err(|error| {
            Failure::unreachable(format!("the answer of {} broke off: {error}", self.url))
        })?;
        Ok(Reply { status: head.status.as_u16(), body: body.to_bytes() })
    }

    async fn connection(&self) -> Result<Connection, Failure> {
        loop {
            let Some(mut idle) = self.idle().pop() else { break };
            if idle.is_usable().await {
                return Ok(idle);
            }
        }
        Connection::open(&self.url, self.tls.as_ref()).await
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }

    fn http(&self, request: Request) -> Result<hyper::Request<Full<Bytes>>, Failure> {
        let mut http = hyper::Request::builder()
            .method(request.method)
            .uri(format!("{}{}", self.url.prefix, request.path))
            .header(HOST, &self.url.authority);
        for (name, value) in request.headers {
            http = http.header(name, value);
        }
        if let Some(authorization) = &self.authorization {
            http = http.header(AUTHORIZATION, authorization);
        }
        http.body(Full::new(request.body))
            .map_err(|error| Failure::usage(format!("this makes no request: {error}")))
    }

    fn broken(&self, error: &hyper::Error) -> Failure {
        let text = format!("{} closed the connection without an answer: {error}", self.url);
        Failure::unreachable(text)
    }

    fn no_answer(&self, limit: Duration) -> Failure {
        let text = format!(
            "{} did not answer within {} s; what was asked may still happen",
            self.url,
            limit.as_secs()
        );
        Failure::unreachable(text)
    }
}

fn token(global: &Global) -> Result<Option<String>, Failure> {
    let Some(file) = &global.token_file else {
        return Ok(global.token.clone().filter(|token| !token.is_empty()));
    };
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("--token-file {}: {error}", file.display())))?;
    let token = text.trim();
    if token.is_empty() {
        return Err(Failure::usage(format!("--token-file {}: it is empty", file.display())));
    }
    Ok(Some(token.to_owned()))
}
