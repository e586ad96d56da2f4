//! The body of a response on its way to the socket. Its bytes count against the budget, and its
//! leases stay in custody, until it is flushed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::App;
use super::response::take_custody;
use super::socket::{ConnState, Unflushed};

/// A body that notes in its connection's state when hyper has taken it.
pub(crate) struct ResponseBody {
    body: Body,
    conn: Arc<ConnState>,
    request: u64,
    unflushed: Option<Unflushed>,
}

/// Attaches a response to its connection. It is counted against the budget and never refused here,
/// because it may report a completed change; a response that may be large is checked against the
/// budget before it is built.
pub(super) fn track(
    app: &App,
    conn: Arc<ConnState>,
    request: u64,
    is_head: bool,
    mut response: Response,
) -> Response<ResponseBody> {
    let custody = take_custody(&mut response);
    let size = usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX);
    let mut held = app.answers.hold();
    held.take(size);
    if is_head || response.body().is_end_stream() {
        // hyper does not poll such a body, and the connection is idle after it all the same.
        conn.await_flush(Unflushed { custody: None, held: None, last_of: Some(request) });
    }
    let unflushed = Some(Unflushed { custody, held: Some(held), last_of: None });
    response.map(|body| ResponseBody { body, conn, request, unflushed })
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(frame) = &frame {
            let is_last = frame.is_none() || self.body.is_end_stream();
            let last_of = is_last.then_some(self.request);
            let unflushed = self.unflushed.take();
            if unflushed.is_some() || is_last {
                let nothing = Unflushed { custody: None, held: None, last_of };
                self.conn.await_flush(Unflushed { last_of, ..unflushed.unwrap_or(nothing) });
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
