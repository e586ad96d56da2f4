//! The input of a connection: bytes that have arrived and are not decoded yet.

#![allow(clippy::disallowed_methods, reason = "closes slow connections")]

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::limits::{COMMAND_MS_MAX, HTTP_BODY_BYTES_PER_S_MIN, INPUT_FREE_BYTES, TURN_BYTES_MAX};
use bytes::BytesMut;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

use super::CloseReason;
use crate::shares::{Portion, SharedLimit};
use crate::visitor::Claimant;

/// Bytes read from a socket at once. They go through the stack, so that a silent connection holds
/// no buffer.
const READ_BYTES: usize = 16 << 10;

/// One connection's input.
pub(super) struct Input {
    pub(super) bytes: BytesMut,
    limit: SharedLimit<Claimant>,
    /// What is counted of it: nothing, while it is small.
    held: Option<Portion<Claimant>>,
    /// When the first byte of an incomplete command was seen.
    begun: Option<Instant>,
    /// The client has shut down its sending side.
    is_over: bool,
}

impl Input {
    pub(super) fn new(limit: SharedLimit<Claimant>) -> Input {
        Input { bytes: BytesMut::new(), limit, held: None, begun: None, is_over: false }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether more may be read ahead while a command of this client waits.
    pub(super) fn may_read_ahead(&mut self, who: impl FnOnce() -> Claimant) -> bool {
        !self.is_over && self.bytes.len() < TURN_BYTES_MAX && self.count(who)
    }

    /// Commands were taken off: the rest begins now.
    pub(super) fn taken(&mut self) {
        self.begun = None;
        if self.bytes.len() <= INPUT_FREE_BYTES {
            self.held = None;
        }
        if self.bytes.is_empty() && self.bytes.capacity() > INPUT_FREE_BYTES {
            self.bytes = BytesMut::new();
        }
    }

    /// Waits for more input. An error means that the connection is broken.
    pub(super) async fn fill<S: AsyncRead + Unpin>(&mut self, socket: &mut S) -> io::Result<()> {
        poll_fn(|cx| self.poll_fill(cx, socket)).await
    }

    fn poll_fill<S: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut S,
    ) -> Poll<io::Result<()>> {
        let mut room = [std::mem::MaybeUninit::uninit(); READ_BYTES];
        let mut read = ReadBuf::uninit(&mut room);
        ready!(Pin::new(socket).poll_read(cx, &mut read))?;
        self.is_over = read.filled().is_empty();
        self.bytes.extend_from_slice(read.filled());
        Poll::Ready(Ok(()))
    }

    /// The deadline for the rest of an incomplete command; `None` if there is none.
    pub(super) fn deadline(&mut self) -> Option<Instant> {
        if self.bytes.is_empty() {
            return None;
        }
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let by_size = self.bytes.len() as u64 * 1_000 / HTTP_BODY_BYTES_PER_S_MIN;
        Some(begun + Duration::from_millis(COMMAND_MS_MAX + by_size))
    }

    /// Whether the input of this client may be kept.
    pub(super) fn admit(&mut self, who: impl FnOnce() -> Claimant) -> Result<(), CloseReason> {
        if self.count(who) { Ok(()) } else { Err(CloseReason::Crowded) }
    }

    /// Counts the input, unless it is small; false if it exceeds what the client may hold.
    fn count(&mut self, who: impl FnOnce() -> Claimant) -> bool {
        let bytes = self.bytes.len();
        if bytes <= INPUT_FREE_BYTES {
            self.held = None;
            return true;
        }
        let limit = &self.limit;
        self.held.get_or_insert_with(|| limit.hold(who())).resize(bytes).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_that_is_read_ahead_is_counted() {
        let limit = SharedLimit::new(20_000, "unfinished commands");
        let mut inputs = [(); 3].map(|()| Input::new(limit.clone()));
        inputs.iter_mut().for_each(|input| input.bytes.extend_from_slice(&[0; 5_000]));
        let who = |name: &str| Claimant::Token(name.into());
        assert!(inputs[0].may_read_ahead(|| who("a")));
        assert!(inputs[1].may_read_ahead(|| who("a")));
        assert!(!inputs[2].may_read_ahead(|| who("a")), "one holds too much");
        assert_eq!(inputs[2].admit(|| who("a")), Err(CloseReason::Crowded));
        inputs[2].held = None;
        assert!(inputs[2].may_read_ahead(|| who("b")), "what one holds is not another's");
        assert_eq!(limit.used(), 15_000);
        inputs[1].bytes.clear();
        inputs[1].taken();
        assert_eq!(limit.used(), 10_000);
        inputs[0].bytes.truncate(INPUT_FREE_BYTES);
        assert_eq!(inputs[0].admit(|| who("a")), Ok(()));
        assert_eq!(limit.used(), 5_000, "a small input is free");
    }
}
