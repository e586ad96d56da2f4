//! The socket under a connection: closes clients that are slow, and knows when an answer left.
//!
//! hyper reads and writes through here. In every phase in which the client has to do something it
//! has a deadline; a deadline that passes is an I/O error, which ends the connection.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use dormouse_core::limits::{HTTP_HEAD_MS_MAX, HTTP_IDLE_MS_MAX, HTTP_STALL_MS_MAX};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::budget::Held;
use super::peer::Peer;
use crate::desk::Custody;

const HEAD: Duration = Duration::from_millis(HTTP_HEAD_MS_MAX);
const IDLE: Duration = Duration::from_millis(HTTP_IDLE_MS_MAX);
const STALL: Duration = Duration::from_millis(HTTP_STALL_MS_MAX);

/// Where a connection is in its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No byte of the first request yet.
    New,
    /// Between requests.
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
    /// Answers given to hyper that the socket has not taken whole.
    leaving: Vec<Leaving>,
}

/// What an answer holds until the socket has taken it.
pub(crate) struct Leaving {
    pub(crate) custody: Option<Custody>,
    #[expect(dead_code, reason = "its drop gives the bytes back")]
    pub(crate) held: Option<Held>,
    /// Nothing of this answer follows.
    pub(crate) last: bool,
}

impl Line {
    pub(crate) fn new() -> Arc<Line> {
        let state = LineState { phase: Phase::New, leaving: Vec::new() };
        Arc::new(Line { state: Mutex::new(state) })
    }

    /// A request's head is complete.
    pub(crate) fn begin_serving(&self) {
        self.lock().phase = Phase::Serving;
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
        if state.leaving.iter().any(|leaving| leaving.last) {
            state.phase = Phase::Idle;
        }
        let left = std::mem::take(&mut state.leaving);
        drop(state);
        let mut carried = left.into_iter().filter_map(|leaving| leaving.custody).peekable();
        if carried.peek().is_some() && !has_refused() {
            carried.for_each(Custody::hand_over);
        }
    }

    /// Bytes came in.
    fn received(&self) -> Phase {
        let mut state = self.lock();
        if matches!(state.phase, Phase::New | Phase::Idle) {
            state.phase = Phase::Head;
        }
        state.phase
    }

    fn phase(&self) -> Phase {
        self.lock().phase
    }

    fn lock(&self) -> MutexGuard<'_, LineState> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket with patience of known length.
pub(crate) struct Wire<S> {
    socket: S,
    line: Arc<Line>,
    timer: Pin<Box<Sleep>>,
    /// The phase the timer was set for; `None` = it is not running.
    timed: Option<Phase>,
    stall: Option<Pin<Box<Sleep>>>,
}

impl<S> Wire<S> {
    pub(crate) fn new(socket: S, line: Arc<Line>) -> Wire<S> {
        let timer = Box::pin(tokio::time::sleep(HEAD));
        Wire { socket, line, timer, timed: Some(Phase::New), stall: None }
    }

    /// The client is waited for: not for ever.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let phase = self.line.phase();
        let patience = match phase {
            Phase::Serving => {
                self.timed = None;
                return Poll::Pending;
            }
            Phase::New | Phase::Head => HEAD,
            Phase::Idle => IDLE,
        };
        if self.timed != Some(phase) {
            self.timed = Some(phase);
            self.timer.as_mut().reset(Instant::now() + patience);
        }
        self.timer.as_mut().poll(cx).map(|()| Err(timed_out("the client was silent for too long")))
    }

    /// The client does not read: not for ever either.
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
        match Pin::new(&mut self.socket).poll_read(cx, buf) {
            Poll::Pending => self.poll_patience(cx),
            Poll::Ready(result) => {
                if buf.filled().len() > before && self.line.received() != Phase::Serving {
                    // The head goes on: its time began with its first byte.
                    return match self.timed {
                        Some(Phase::Head) => self.out_of_time(cx).unwrap_or(Poll::Ready(result)),
                        _ => {
                            self.timed = Some(Phase::Head);
                            self.timer.as_mut().reset(Instant::now() + HEAD);
                            Poll::Ready(result)
                        }
                    };
                }
                Poll::Ready(result)
            }
        }
    }
}

impl<S> Wire<S> {
    /// A head that dribbles in always has bytes ready; its time passes all the same.
    fn out_of_time(&mut self, cx: &mut Context<'_>) -> Option<Poll<io::Result<()>>> {
        match self.timer.as_mut().poll(cx) {
            Poll::Ready(()) => Some(Poll::Ready(Err(timed_out("the request came too slowly")))),
            Poll::Pending => None,
        }
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
