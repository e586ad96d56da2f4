//! An answer on its way to the socket: counted while it is held, and given back if it never left.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::App;
use super::problem::Problem;
use super::reply::unload;
use super::wire::{Leaving, Line};

/// Answers up to this size are never refused: they say what has been done.
const SMALL: usize = 64 << 10;

/// A body that tells its connection when hyper takes it.
pub(crate) struct Outgoing {
    body: Body,
    line: Arc<Line>,
    leaving: Option<Leaving>,
}

/// Prepares an answer for its way out.
pub(super) fn send_off(app: &App, line: Arc<Line>, mut response: Response) -> Response<Outgoing> {
    let custody = unload(&mut response);
    let size = usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX);
    let mut held = app.answers.hold();
    if let Err(error) = held.grow(size)
        && size > SMALL
    {
        // What it carried goes back with the custody.
        drop((held, custody));
        return send_off(app, line, Problem::from(error).into_response());
    }
    let leaving = Some(Leaving { custody, held: Some(held), last: false });
    if size == 0 && response.body().is_end_stream() {
        // hyper does not look into an empty body; the connection is idle after it all the same.
        line.leave(Leaving { custody: None, held: None, last: true });
    }
    response.map(|body| Outgoing { body, line, leaving })
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
            let last = frame.is_none() || self.body.is_end_stream();
            let leaving = self.leaving.take();
            if leaving.is_some() || last {
                let nothing = Leaving { custody: None, held: None, last };
                self.line.leave(Leaving { last, ..leaving.unwrap_or(nothing) });
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
