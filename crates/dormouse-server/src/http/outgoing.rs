//! An answer on its way to the socket: counted while it is held, and given back if it never left.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::App;
use super::reply::unload;
use super::wire::{Leaving, Line};

/// A body that tells its connection when hyper takes it.
pub(crate) struct Outgoing {
    body: Body,
    line: Arc<Line>,
    request: u64,
    leaving: Option<Leaving>,
}

/// Prepares the answer to a request for its way out. It is counted and never refused here: it may
/// tell of something that was done. What can be large is asked for its size before it is made.
pub(super) fn send_off(
    app: &App,
    line: Arc<Line>,
    request: u64,
    is_head: bool,
    mut response: Response,
) -> Response<Outgoing> {
    let custody = unload(&mut response);
    let size = usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX);
    let mut held = app.answers.hold();
    held.take(size);
    if is_head || response.body().is_end_stream() {
        // hyper does not look into such a body; the connection is idle after it all the same.
        line.leave(Leaving { custody: None, held: None, last_of: Some(request) });
    }
    let leaving = Some(Leaving { custody, held: Some(held), last_of: None });
    response.map(|body| Outgoing { body, line, request, leaving })
}

impl HttpBody for Outgoing {
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
            let leaving = self.leaving.take();
            if leaving.is_some() || is_last {
                let nothing = Leaving { custody: None, held: None, last_of };
                self.line.leave(Leaving { last_of, ..leaving.unwrap_or(nothing) });
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
