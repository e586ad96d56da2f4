//! HTTP connections: hyper over a [`GuardedSocket`].

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::limits::{HTTP_HEAD_BYTES_MAX, HTTP_HEADERS_MAX};
use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

use super::peer::Peer;
use super::problem::Problem;
use super::response_body::track;
use super::socket::{ConnState, DeadlineTimer, GuardedSocket};
use super::{App, browser, head};
use crate::acceptor::Acceptor;
use crate::metrics::ProtocolKind;
use crate::visitor::Visitor;

/// The response to a connection beyond the limit. No request is read, so the client may miss it.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\
    Retry-After: 1\r\nConnection: close\r\n\r\n";

/// Everything that serves HTTP on one address.
#[derive(Clone)]
pub(crate) struct HttpServer {
    pub(crate) app: App,
    pub(crate) router: Router,
    pub(crate) acceptor: Acceptor,
}

impl HttpServer {
    /// Accepts connections until the server stops.
    pub(crate) async fn run(self, listener: TcpListener) {
        let acceptor = self.acceptor.clone();
        let serve = move |socket, visitor| self.clone().start(socket, visitor);
        acceptor.run(listener, ProtocolKind::Http, BUSY, serve).await;
    }

    /// Completes the TLS handshake, if there is one, and serves the connection.
    async fn start(self, socket: TcpStream, visitor: Arc<Visitor>) {
        let Some(tls) = self.app.tls.clone() else { return self.serve(socket, visitor).await };
        let accepted = tokio::select! {
            accepted = tls.accept(socket) => accepted,
            () = self.acceptor.aborting() => None,
        };
        if let Some(stream) = accepted {
            self.serve(stream, visitor).await;
        }
    }

    async fn serve<S>(self, socket: S, visitor: Arc<Visitor>)
    where
        S: AsyncRead + AsyncWrite + Peer + Unpin,
    {
        let conn = ConnState::new(Arc::clone(&visitor));
        let socket = GuardedSocket::new(socket, Arc::clone(&conn));
        let mut timer = DeadlineTimer::new(Arc::clone(&conn));
        let (app, router) = (self.app.clone(), self.router.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            let (app, router, conn) = (app.clone(), router.clone(), Arc::clone(&conn));
            request.extensions_mut().insert(Arc::clone(&visitor));
            async move {
                let number = conn.begin_serving();
                let is_head = request.method() == Method::HEAD;
                let has_body = !request.body().is_end_stream();
                let mut response = respond(&app, router, request, conn.head_is_strict()).await;
                browser::protect(&mut response);
                let status = response.status();
                if has_body && (status.is_client_error() || status.is_server_error()) {
                    conn.leave_unread();
                }
                Ok::<_, Infallible>(track(&app, conn, number, is_head, response))
            }
        });
        let connection = http1::Builder::new()
            .max_buf_size(HTTP_HEAD_BYTES_MAX)
            .max_headers(HTTP_HEADERS_MAX)
            .serve_connection(TokioIo::new(socket), service);
        tokio::pin!(connection);
        let Acceptor { mut stopping, mut aborting, .. } = self.acceptor.clone();
        let mut graceful = false;
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection ended");
                    }
                    return;
                }
                () = timer.expired() => {
                    tracing::debug!("a client missed its deadline");
                    return;
                }
                _ = stopping.wait_for(|&stopping| stopping), if !graceful => {
                    graceful = true;
                    connection.as_mut().graceful_shutdown();
                }
                _ = aborting.wait_for(|&aborting| aborting) => return,
            }
        }
    }
}

/// Refuses what a foreign page may have sent, and changes by a console that may only look.
fn check_browser(app: &App, request: &Request<Incoming>) -> Result<(), Problem> {
    let (method, headers) = (request.method(), request.headers());
    app.guard.check(headers)?;
    browser::check_site(method, request.uri().path(), headers)?;
    browser::check_ui(app.ui.mode, method, request.uri().path(), headers)
}

async fn respond(
    app: &App,
    router: Router,
    request: Request<Incoming>,
    head_is_strict: bool,
) -> Response {
    let refuse = |problem: Problem| {
        app.metrics.answered(None, request.method(), problem.status(), Duration::ZERO);
        problem.into_response()
    };
    if let Err(problem) = head::check(&request, head_is_strict) {
        // Where a request ends whose head has two meanings is not certain either.
        let mut response = refuse(problem);
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    if let Err(problem) = check_browser(app, &request) {
        return refuse(problem);
    }
    match router.oneshot(request.map(Body::new)).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
