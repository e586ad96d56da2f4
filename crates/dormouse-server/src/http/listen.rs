//! HTTP on a connection: hyper over a socket that watches its client.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::limits::{HTTP_HEAD_BYTES_MAX, HTTP_HEADERS_MAX};
use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

use super::App;
use super::outgoing::send_off;
use super::peer::Peer;
use super::wire::{Line, Patience, Wire};
use crate::gate::Gate;
use crate::metrics::ProtocolKind;

/// What a client beyond the limit is told; it has not been read, so it may not see it.
const CROWDED: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\
    Retry-After: 1\r\nConnection: close\r\n\r\n";

/// Everything that serves HTTP on one address.
#[derive(Clone)]
pub(crate) struct Listening {
    pub(crate) app: App,
    pub(crate) router: Router,
    pub(crate) gate: Gate,
}

impl Listening {
    /// Accepts until told to stop.
    pub(crate) async fn run(self, listener: TcpListener) {
        let gate = self.gate.clone();
        let serve = move |socket| self.clone().converse(socket);
        gate.run(listener, ProtocolKind::Http, CROWDED, serve).await;
    }

    async fn converse(self, socket: TcpStream) {
        let Some(tls) = self.app.tls.clone() else { return self.serve(socket).await };
        let accepted = tokio::select! {
            accepted = tls.accept(socket) => accepted,
            () = self.gate.aborting() => None,
        };
        if let Some(stream) = accepted {
            self.serve(stream).await;
        }
    }

    async fn serve<S: AsyncRead + AsyncWrite + Peer + Unpin>(self, socket: S) {
        let line = Line::new();
        let wire = Wire::new(socket, Arc::clone(&line));
        let mut patience = Patience::new(Arc::clone(&line));
        let (app, router) = (self.app.clone(), self.router.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let (app, router, line) = (app.clone(), router.clone(), Arc::clone(&line));
            async move {
                let number = line.begin_serving();
                let is_head = request.method() == Method::HEAD;
                let response = respond(&app, router, request).await;
                Ok::<_, Infallible>(send_off(&app, line, number, is_head, response))
            }
        });
        let connection = http1::Builder::new()
            .max_buf_size(HTTP_HEAD_BYTES_MAX)
            .max_headers(HTTP_HEADERS_MAX)
            .serve_connection(TokioIo::new(wire), service);
        tokio::pin!(connection);
        let Gate { mut stopping, mut aborting, .. } = self.gate.clone();
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
                () = patience.run_out() => {
                    tracing::debug!("a client was silent for too long");
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

async fn respond(app: &App, router: Router, request: Request<Incoming>) -> Response {
    if let Err(problem) = app.guard.check(request.headers()) {
        app.metrics.answered(None, request.method(), problem.status(), Duration::ZERO);
        return problem.into_response();
    }
    match router.oneshot(request.map(Body::new)).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
