//! A body that is an endless stream of server-sent events.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::Frame;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};

/// Where the text of a stream comes from.
pub(crate) trait Pieces: Send + Sized + 'static {
    /// Waits for the next piece of text; `None` = the end.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// The response with such a stream.
pub(crate) fn stream(pieces: impl Pieces) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // Otherwise nginx waits until its buffer is full of events.
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::new(StreamBody::new(pieces))).into_response()
}

type NextPiece<P> = Pin<Box<dyn Future<Output = Option<(Bytes, P)>> + Send>>;

/// A body that asks for a piece when hyper has room for more, and buffers nothing.
struct StreamBody<P> {
    next: Option<NextPiece<P>>,
}

impl<P: Pieces> StreamBody<P> {
    fn new(pieces: P) -> StreamBody<P> {
        StreamBody { next: Some(Box::pin(next_of(pieces))) }
    }
}

async fn next_of<P: Pieces>(mut pieces: P) -> Option<(Bytes, P)> {
    let piece = pieces.next().await?;
    Some((piece, pieces))
}

impl<P: Pieces> http_body::Body for StreamBody<P> {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        let Some((piece, pieces)) = ready!(next.as_mut().poll(cx)) else {
            self.next = None;
            return Poll::Ready(None);
        };
        self.next = Some(Box::pin(next_of(pieces)));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}
