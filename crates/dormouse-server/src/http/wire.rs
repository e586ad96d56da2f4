//! The socket under a connection: closes clients that are slow, and knows when an answer left.
//!
//! hyper reads and writes through here. In every phase in which the client has to do something it
//! has a deadline; one that passes ends the connection.

#![allow(clippy::disallowed_methods, reason = "closes slow connections")]

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::limits::{HTTP_HEAD_MS_MAX, HTTP_IDLE_MS_MAX, STALL_MS_MAX};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::peer::Peer;
use crate::budget::Held;
use crate::client::Custody;

const HEAD: Duration = Duration::from_millis(HTTP_HEAD_MS_MAX);
const IDLE: Duration = Duration::from_millis(HTTP_IDLE_MS_MAX);
const STALL: Duration = Duration::from_millis(STALL_MS_MAX);

/// Where a connection is in its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Between requests, or before the first one.
    Idle,
    /// In a request's line or headers.
    Head,
    /// A request is being served.
    Serving,
}

/// What the socket and the requests of one connection share.
pub(crate) struct Line {
    state: Mutex<LineState>,
}

struct LineState {
    phase: Phase,
    /// When the client must have done what the phase asks of it.
    deadline: Option<Instant>,
    /// Requests that were begun.
    requests: u64,
    /// Answers given to hyper that the socket has not taken whole.
    leaving: Vec<Leaving>,
}

/// What an answer holds until the socket has taken it.
pub(crate) struct Leaving {
    pub(crate) custody: Option<Custody>,
    #[expect(dead_code, reason = "its drop gives the bytes back")]
    pub(crate) held: Option<Held>,
    /// The request whose answer ends here.
    pub(crate) last_of: Option<u64>,
}

impl Line {
    pub(crate) fn new() -> Arc<Line> {
        // Who connects has something to say: the first request has no time to idle before.
        let deadline = Some(Instant::now() + HEAD);
        let state = LineState { phase: Phase::Idle, deadline, requests: 0, leaving: Vec::new() };
        Arc::new(Line { state: Mutex::new(state) })
    }

    /// A request's head is complete; gives the request's number.
    pub(crate) fn begin_serving(&self) -> u64 {
        let mut state = self.lock();
        (state.phase, state.deadline) = (Phase::Serving, None);
        state.requests += 1;
        state.requests
    }

    /// hyper took this answer's bytes; the next flush means that the socket took them.
    pub(crate) fn leave(&self, leaving: Leaving) {
        self.lock().leaving.push(leaving);
    }

    /// Whether leases or a lock wait for the socket to take them.
    fn carries(&self) -> bool {
        self.lock().leaving.iter().any(|leaving| leaving.custody.is_some())
    }

    /// Everything given to hyper is in the socket. What it carried is the client's now, unless the
    /// client refused it; then it is given back.
    fn flushed(&self, has_refused: impl FnOnce() -> bool) {
        let mut state = self.lock();
        if state.leaving.is_empty() {
            return;
        }
        // The next request of a pipeline may be served already.
        if state.leaving.iter().any(|leaving| leaving.last_of == Some(state.requests)) {
            (state.phase, state.deadline) = (Phase::Idle, Some(Instant::now() + IDLE));
        }
        let left = std::mem::take(&mut state.leaving);
        drop(state);
        let mut carried = left.into_iter().filter_map(|leaving| leaving.custody).peekable();
        if carried.peek().is_some() && !has_refused() {
            carried.for_each(Custody::hand_over);
        }
    }

    /// Bytes came in: the first ones of a head start its time.
    fn received(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Idle {
            (state.phase, state.deadline) = (Phase::Head, Some(Instant::now() + HEAD));
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.lock().deadline
    }

    fn lock(&self) -> MutexGuard<'_, LineState> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long the client is waited for. Polled beside the connection, in the same task, after it: so
/// it sees every change of the deadline, whichever side of the socket hyper looks at.
pub(crate) struct Patience {
    line: Arc<Line>,
    timer: Pin<Box<Sleep>>,
}

impl Patience {
    pub(crate) fn new(line: Arc<Line>) -> Patience {
        Patience { line, timer: Box::pin(tokio::time::sleep(HEAD)) }
    }

    /// Resolves when a deadline has passed.
    pub(crate) async fn run_out(&mut self) {
        std::future::poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(deadline) = self.line.deadline() else { return Poll::Pending };
            // A timer that is early costs a look; one that is late costs the deadline.
            if deadline < self.timer.deadline() || self.timer.is_elapsed() {
                self.timer.as_mut().reset(deadline);
            }
            match self.timer.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) if Instant::now() >= deadline => return Poll::Ready(()),
                Poll::Ready(()) => {}
            }
        }
    }
}

/// The socket: its reads and writes are noted on the line.
pub(crate) struct Wire<S> {
    socket: S,
    line: Arc<Line>,
    stall: Option<Pin<Box<Sleep>>>,
}

impl<S> Wire<S> {
    pub(crate) fn new(socket: S, line: Arc<Line>) -> Wire<S> {
        Wire { socket, line, stall: None }
    }

    /// The client does not read: not for ever.
    fn poll_stall<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let stall = self.stall.get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL)));
        stall.as_mut().poll(cx).map(|()| Err(timed_out("the client does not read its answer")))
    }
}

fn timed_out(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, text)
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.line.received();
        }
        read
    }
}

impl<S: AsyncWrite + Peer + Unpin> Wire<S> {
    /// A client that closed before it can have read all of an answer does not get its leases.
    fn before_write(&self) -> io::Result<()> {
        if self.line.carries() && self.socket.has_left() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }

    fn after_write(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Pending => self.poll_stall(cx),
            ready => {
                self.stall = None;
                ready
            }
        }
    }
}

impl<S: AsyncWrite + Peer + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.before_write()?;
        let written = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.after_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.before_write()?;
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        self.after_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.socket).poll_flush(cx) {
            Poll::Pending => self.poll_stall(cx),
            Poll::Ready(result) => {
                self.stall = None;
                // hyper flushes only after it has written everything it was given.
                if result.is_ok() {
                    self.line.flushed(|| self.socket.has_refused());
                }
                Poll::Ready(result)
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.socket).poll_shutdown(cx) {
            Poll::Pending => self.poll_stall(cx),
            ready => ready,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_out(patience: &mut Patience) -> bool {
        // A deadline that has passed is noticed at the next look.
        tokio::time::timeout(Duration::from_millis(1), patience.run_out()).await.is_ok()
    }

    fn answered(line: &Line, request: u64) {
        line.leave(Leaving { custody: None, held: None, last_of: Some(request) });
        line.flushed(|| false);
    }

    #[tokio::test(start_paused = true)]
    async fn every_phase_has_its_time() {
        let line = Line::new();
        let mut patience = Patience::new(Arc::clone(&line));
        assert!(!is_out(&mut patience).await);
        line.received();
        tokio::time::advance(HEAD / 2).await;
        line.received();
        assert!(!is_out(&mut patience).await);
        let first = line.begin_serving();
        tokio::time::advance(10 * IDLE).await;
        assert!(!is_out(&mut patience).await, "a request may take its time");
        answered(&line, first);
        tokio::time::advance(IDLE - Duration::from_secs(1)).await;
        assert!(!is_out(&mut patience).await);
        line.received();
        tokio::time::advance(HEAD / 2).await;
        assert!(!is_out(&mut patience).await, "a head has its own time");
        tokio::time::advance(HEAD).await;
        assert!(is_out(&mut patience).await, "and no more");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_connection() {
        let line = Line::new();
        let mut patience = Patience::new(Arc::clone(&line));
        let (first, second) = (line.begin_serving(), line.begin_serving());
        answered(&line, first);
        tokio::time::advance(2 * IDLE).await;
        assert!(!is_out(&mut patience).await, "the second of a pipeline is served");
        answered(&line, second);
        tokio::time::advance(IDLE).await;
        assert!(is_out(&mut patience).await);
    }
}
