//! The socket under an HTTP connection. It enforces the deadlines of slow clients, and knows when a
//! response has been sent.
//!
//! hyper reads and writes through a [`GuardedSocket`], which notes the connection's phase in its
//! [`ConnState`]. Every phase in which the client has to act has a deadline; when it passes,
//! [`DeadlineTimer`] ends the connection.
//!
//! hyper flushes only after it has written everything it was given. So what a response holds (its
//! leases, its share of the budget) is queued as [`Unflushed`] when hyper takes its bytes, and
//! handed over to the client at the next successful flush.

#![allow(clippy::disallowed_methods, reason = "closes slow connections")]

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::limits::{
    GUEST_MS_MAX, HTTP_HEAD_MS_MAX, HTTP_IDLE_MS_MAX, LINGER_BYTES_MAX, LINGER_MS_MAX, STALL_MS_MAX,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::head::LineScan;
use super::peer::Peer;
use crate::budget::Held;
use crate::client::Custody;
use crate::visitor::Visitor;

const HEAD: Duration = Duration::from_millis(HTTP_HEAD_MS_MAX);
const IDLE: Duration = Duration::from_millis(HTTP_IDLE_MS_MAX);
/// Idle time of a client that has sent no good token.
const GUEST_IDLE: Duration = Duration::from_millis(GUEST_MS_MAX);
const STALL: Duration = Duration::from_millis(STALL_MS_MAX);

/// What a connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Between requests, or before the first one.
    Idle,
    /// The request line and headers are arriving.
    Head,
    /// A request is being served.
    Serving,
}

/// State shared by the socket and the requests of one connection.
pub(crate) struct ConnState {
    visitor: Arc<Visitor>,
    inner: Mutex<Inner>,
}

struct Inner {
    phase: Phase,
    /// When the client must have completed the phase; `None` = it is the server's turn.
    deadline: Option<Instant>,
    /// Requests begun so far.
    requests: u64,
    /// Responses given to hyper that are not flushed yet.
    unflushed: Vec<Unflushed>,
    /// The lines of the head that arrives or arrived last.
    lines: LineScan,
    /// The last request was refused, and its body may still arrive.
    has_unread: bool,
}

/// What a response holds until it is flushed.
pub(crate) struct Unflushed {
    pub(crate) custody: Option<Custody>,
    #[expect(dead_code, reason = "its drop gives the bytes back")]
    pub(crate) held: Option<Held>,
    /// The number of the request whose response ends here.
    pub(crate) last_of: Option<u64>,
}

impl ConnState {
    pub(crate) fn new(visitor: Arc<Visitor>) -> Arc<ConnState> {
        // A client connects to send something, so the first request gets no idle time.
        let deadline = Some(Instant::now() + HEAD);
        let inner = Inner {
            phase: Phase::Idle,
            deadline,
            requests: 0,
            unflushed: Vec::new(),
            lines: LineScan::NEW,
            has_unread: false,
        };
        Arc::new(ConnState { visitor, inner: Mutex::new(inner) })
    }

    /// Notes that a request's head is complete, and returns the request's number.
    pub(crate) fn begin_serving(&self) -> u64 {
        let mut state = self.lock();
        (state.phase, state.deadline) = (Phase::Serving, None);
        state.requests += 1;
        if state.has_unread {
            // The rest of a refused body may have been taken for lines of this head.
            (state.lines, state.has_unread) = (LineScan::NEW, false);
        }
        state.requests
    }

    /// Whether each line of the head ended with CR LF. Of a head that arrived in one piece with the
    /// request before it, this is not known, and it counts as strict.
    pub(crate) fn head_is_strict(&self) -> bool {
        self.lock().lines.is_strict()
    }

    /// Notes that a request is refused whose body may still arrive.
    pub(crate) fn leave_unread(&self) {
        self.lock().has_unread = true;
    }

    /// Whether more of a refused request may still arrive: of its body, or of a head that hyper
    /// refused before it was complete.
    fn has_unread(&self) -> bool {
        let state = self.lock();
        state.has_unread || state.phase == Phase::Head
    }

    /// Notes that hyper took a response's bytes: the next flush sends them.
    pub(crate) fn await_flush(&self, unflushed: Unflushed) {
        self.lock().unflushed.push(unflushed);
    }

    /// Whether an unflushed response grants leases or a lock.
    fn holds_custody(&self) -> bool {
        self.lock().unflushed.iter().any(|unflushed| unflushed.custody.is_some())
    }

    /// Everything given to hyper is in the socket: its leases and locks are the client's now, or
    /// given back if the client has refused the bytes.
    fn flushed(&self, has_refused: impl FnOnce() -> bool) {
        let mut state = self.lock();
        if state.unflushed.is_empty() {
            return;
        }
        // With pipelining the next request may have begun.
        if state.unflushed.iter().any(|unflushed| unflushed.last_of == Some(state.requests)) {
            let idle = if self.visitor.is_guest() { GUEST_IDLE } else { IDLE };
            (state.phase, state.deadline) = (Phase::Idle, Some(Instant::now() + idle));
        }
        let flushed = std::mem::take(&mut state.unflushed);
        drop(state);
        let mut grants = flushed.into_iter().filter_map(|response| response.custody).peekable();
        if grants.peek().is_some() && !has_refused() {
            grants.for_each(Custody::hand_over);
        }
    }

    /// Notes that bytes arrived: the first bytes of a head start its deadline.
    fn received(&self, bytes: &[u8]) {
        let mut state = self.lock();
        if state.phase == Phase::Idle {
            (state.phase, state.deadline) = (Phase::Head, Some(Instant::now() + HEAD));
            state.lines = LineScan::NEW;
        }
        if state.phase == Phase::Head {
            state.lines.feed(bytes);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.lock().deadline
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it is held.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Expires when the client misses a deadline. It is polled in the connection's own task, after the
/// connection, so it sees every change of the deadline, whether hyper reads or writes.
pub(crate) struct DeadlineTimer {
    conn: Arc<ConnState>,
    timer: Pin<Box<Sleep>>,
}

impl DeadlineTimer {
    pub(crate) fn new(conn: Arc<ConnState>) -> DeadlineTimer {
        DeadlineTimer { conn, timer: Box::pin(tokio::time::sleep(HEAD)) }
    }

    /// Resolves when a deadline has passed.
    pub(crate) async fn expired(&mut self) {
        std::future::poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(deadline) = self.conn.deadline() else { return Poll::Pending };
            // A timer that fires early costs one poll; one that fires late misses the deadline.
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

/// A socket whose reads and flushes are noted in the connection's state.
pub(crate) struct GuardedSocket<S> {
    socket: S,
    conn: Arc<ConnState>,
    stall: Option<Pin<Box<Sleep>>>,
    linger: Option<Linger>,
}

/// Reads what still arrives after the response to a refused request, and drops it: a socket that is
/// closed with unread input is reset, and its client may lose the response.
struct Linger {
    timer: Pin<Box<Sleep>>,
    left_bytes: usize,
}

impl Linger {
    fn new() -> Linger {
        let timer = Box::pin(tokio::time::sleep(Duration::from_millis(LINGER_MS_MAX)));
        Linger { timer, left_bytes: LINGER_BYTES_MAX }
    }

    /// Resolves at the end of the input, or when enough of it was read.
    fn poll<S: AsyncRead + Unpin>(&mut self, socket: &mut S, cx: &mut Context<'_>) -> Poll<()> {
        let mut space = [0; 4 << 10];
        loop {
            if self.timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let mut buf = ReadBuf::new(&mut space);
            let read = std::task::ready!(Pin::new(&mut *socket).poll_read(cx, &mut buf));
            let bytes = buf.filled().len();
            if read.is_err() || bytes == 0 || bytes > self.left_bytes {
                return Poll::Ready(());
            }
            self.left_bytes -= bytes;
        }
    }
}

impl<S> GuardedSocket<S> {
    pub(crate) fn new(socket: S, conn: Arc<ConnState>) -> GuardedSocket<S> {
        GuardedSocket { socket, conn, stall: None, linger: None }
    }

    /// Fails once the client has read nothing for `STALL`.
    fn poll_stall<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let stall = self.stall.get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL)));
        stall.as_mut().poll(cx).map(|()| Err(timed_out("the client does not read its response")))
    }
}

fn timed_out(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, text)
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(cx, buf);
        let read_bytes = &buf.filled()[before..];
        if !read_bytes.is_empty() {
            self.conn.received(read_bytes);
        }
        read
    }
}

impl<S: AsyncWrite + Peer + Unpin> GuardedSocket<S> {
    /// A client that closed before it can have read the whole response does not get its leases.
    fn before_write(&self) -> io::Result<()> {
        if self.conn.holds_custody() && self.socket.has_left() {
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

impl<S: AsyncRead + AsyncWrite + Peer + Unpin> AsyncWrite for GuardedSocket<S> {
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
                if result.is_ok() {
                    self.conn.flushed(|| self.socket.has_refused());
                }
                Poll::Ready(result)
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let GuardedSocket { socket, conn, linger, .. } = &mut *self;
        if let Some(linger) = linger {
            return linger.poll(socket, cx).map(Ok);
        }
        match Pin::new(&mut *socket).poll_shutdown(cx) {
            Poll::Pending => self.poll_stall(cx),
            Poll::Ready(Ok(())) if conn.has_unread() => {
                linger.insert(Linger::new()).poll(socket, cx).map(Ok)
            }
            ready => ready,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::ProtocolKind;
    use crate::shares::{Portion, SharedLimit};
    use crate::visitor::Address;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn connect(guest: Option<Portion<Address>>) -> Arc<ConnState> {
        ConnState::new(Arc::new(Visitor::new(Address::Local, ProtocolKind::Http, guest)))
    }

    /// Where tokens are needed, a client without one is not waited for.
    #[tokio::test(start_paused = true)]
    async fn a_guest_is_idle_for_a_short_time_only() {
        let guests = SharedLimit::new(1, "guests");
        for is_welcome in [false, true] {
            let conn = connect(guests.take(Address::Local, 1).ok());
            let mut timer = DeadlineTimer::new(Arc::clone(&conn));
            let first = conn.begin_serving();
            if is_welcome {
                conn.visitor.welcome();
            }
            answered(&conn, first);
            tokio::time::advance(GUEST_IDLE + Duration::from_secs(1)).await;
            assert_eq!(is_expired(&mut timer).await, !is_welcome);
        }
    }

    async fn is_expired(timer: &mut DeadlineTimer) -> bool {
        // A deadline that has passed is noticed at the next poll.
        tokio::time::timeout(Duration::from_millis(1), timer.expired()).await.is_ok()
    }

    fn answered(conn: &ConnState, request: u64) {
        conn.await_flush(Unflushed { custody: None, held: None, last_of: Some(request) });
        conn.flushed(|| false);
    }

    #[tokio::test(start_paused = true)]
    async fn every_phase_has_its_own_deadline() {
        let conn = connect(None);
        let mut timer = DeadlineTimer::new(Arc::clone(&conn));
        assert!(!is_expired(&mut timer).await);
        conn.received(b"x");
        tokio::time::advance(HEAD / 2).await;
        conn.received(b"x");
        assert!(!is_expired(&mut timer).await);
        let first = conn.begin_serving();
        tokio::time::advance(10 * IDLE).await;
        assert!(!is_expired(&mut timer).await, "a request may take its time");
        answered(&conn, first);
        tokio::time::advance(IDLE - Duration::from_secs(1)).await;
        assert!(!is_expired(&mut timer).await);
        conn.received(b"x");
        tokio::time::advance(HEAD / 2).await;
        assert!(!is_expired(&mut timer).await, "a head has its own time");
        tokio::time::advance(HEAD).await;
        assert!(is_expired(&mut timer).await, "and no more");
    }

    /// hyper answers a head that it refuses and closes, while more of it may be on its way.
    #[tokio::test(start_paused = true)]
    async fn a_head_that_is_refused_is_lingered_for() {
        for (sent, lingers) in [(&b"no head"[..], true), (b"", false)] {
            let (mut client, server) = tokio::io::duplex(64);
            let mut socket = GuardedSocket::new(server, connect(None));
            if lingers {
                client.write_all(sent).await.unwrap();
                socket.read_exact(&mut vec![0; sent.len()]).await.unwrap();
            }
            let mut shutdown = Box::pin(socket.shutdown());
            let waits = tokio::time::timeout(Duration::from_millis(1), &mut shutdown).await;
            assert_eq!(waits.is_err(), lingers);
            if lingers {
                drop(client);
                shutdown.await.unwrap();
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_closed() {
        let conn = connect(None);
        let mut timer = DeadlineTimer::new(Arc::clone(&conn));
        let (first, second) = (conn.begin_serving(), conn.begin_serving());
        answered(&conn, first);
        tokio::time::advance(2 * IDLE).await;
        assert!(!is_expired(&mut timer).await, "the second of a pipeline is served");
        answered(&conn, second);
        tokio::time::advance(IDLE).await;
        assert!(is_expired(&mut timer).await);
    }
}
