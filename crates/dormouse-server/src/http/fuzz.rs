//! Random heads of HTTP requests.

use std::cell::Cell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use dormouse_core::job::Token;
use dormouse_core::topic::TopicName;
use dormouse_fuzz::{Input, Target, fuzz};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::guard::HostGuard;
use super::head;
use super::params::Params;
use super::peer::Peer;
use super::socket::{ConnState, GuardedSocket};
use crate::access::Access;
use crate::limits::{HTTP_HEAD_BYTES_MAX, HTTP_HEADERS_MAX};
use crate::metrics::ProtocolKind;
use crate::visitor::{Address, Visitor};

const TARGET: Target<'_> = Target {
    name: "http_head",
    home: env!("CARGO_MANIFEST_DIR"),
    seeds: &[
        b"GET /v1/topics/t?after=a%20b&limit=5 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /v1/ack HTTP/1.1\r\nHost: localhost:7788\r\nAuthorization: Bearer x\r\n\
          Content-Length: 2\r\nConnection: keep-alive\r\n\r\n{}GET / HTTP/1.0\r\n\r\n",
        b"PUT /v1/topics/a%2Fb HTTP/1.1\r\nhost: [::1]:7788\r\norigin: http://localhost:7788\r\n\
          transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"GET http://localhost/x?at=2030-01-01T00:00:00%2B01:00&delay=PT1M&flag HTTP/1.1\r\n\
          Host: localhost\r\nLast-Event-ID: 18c2f0a1-42\r\nExpect: 100-continue\r\n\r\n",
    ],
    words: &[
        b"\r\n",
        b"\n",
        b"\r",
        b"\r\n\r\n",
        b": ",
        b"Host: localhost\r\n",
        b"Host: a\r\n",
        b"%",
        b"%00",
        b"%zz",
        b"&",
        b"=",
        b"Content-Length: 0\r\n",
        b"Content-Length: 1\r\n",
        b"HTTP/1.1",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip\r\n",
        b"Connection: close\r\n",
        b"Origin: http://evil.example\r\n",
        b"limit=",
        b"delay=",
        b"at=",
        b"\0",
        b"\xff",
        b"[::1]",
    ],
    // hyper's buffers, the pipe of the test, and the responses.
    held_bytes_max: |bytes| (96 << 10) + 32 * bytes as u64,
};

impl Peer for DuplexStream {
    fn has_left(&self) -> bool {
        false
    }

    fn has_refused(&self) -> bool {
        false
    }
}

/// What a route does before it knows its caller.
fn respond(guard: &HostGuard, request: &Request<Incoming>, is_strict: bool) -> Response {
    let checked = head::check(request, is_strict).and_then(|()| guard.check(request.headers()));
    let parsed = checked.and_then(|()| Params::parse(request.uri().query().unwrap_or_default()));
    let read = parsed.and_then(|mut params| {
        params.span("delay")?;
        params.instant("at")?;
        params.parsed::<usize>("limit", "a number")?;
        params.flag("flag")?;
        params.text("after").map(|name| TopicName::new(&name)).transpose()?;
        params.text("token").map(|token| token.parse::<Token>()).transpose()?;
        params.finish()
    });
    match read {
        Ok(()) => "good".into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// The statuses of the responses to an input.
async fn statuses(guard: &HostGuard, input: &Input) -> Vec<u8> {
    let (mut client, socket) = tokio::io::duplex(64 << 10);
    let visitor = Arc::new(Visitor::new(Address::Local, ProtocolKind::Http, None));
    let conn = ConnState::new(visitor);
    let socket = GuardedSocket::new(socket, Arc::clone(&conn));
    let service = service_fn(|request: Request<Incoming>| {
        conn.begin_serving();
        let response = respond(guard, &request, conn.head_is_strict());
        async { Ok::<_, Infallible>(response) }
    });
    let served = http1::Builder::new()
        .max_buf_size(HTTP_HEAD_BYTES_MAX)
        .max_headers(HTTP_HEADERS_MAX)
        .serve_connection(TokioIo::new(socket), service);
    let mut answer = Vec::new();
    let asked = async {
        for piece in input.pieces() {
            // An error says that the connection is closed already.
            if client.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let _ = client.shutdown().await;
        let _ = client.read_to_end(&mut answer).await;
    };
    let _ = tokio::join!(served, asked);
    answer
}

/// Whatever arrives, each request gets one response, and nothing else is written.
#[test]
fn fuzz_http_head() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let guard = HostGuard::new(Access::open(), &[], SocketAddr::from(([127, 0, 0, 1], 7788)));
    let answered = Cell::new(0_u64);
    fuzz(&TARGET, |input| {
        let answer = runtime.block_on(statuses(&guard, input));
        if !answer.is_empty() {
            assert!(answer.starts_with(b"HTTP/1."), "{}", answer.escape_ascii());
            answered.set(answered.get() + 1);
        }
    });
    assert!(answered.get() > 0);
}
