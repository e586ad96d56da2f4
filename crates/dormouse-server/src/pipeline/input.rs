//! The input of a connection: bytes that have arrived and are not decoded yet.

#![allow(clippy::disallowed_methods, reason = "closes slow connections")]

use std::cmp::Ordering;
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
use crate::budget::{Budget, Held};

/// Bytes read from a socket at once. They go through the stack, so that a silent connection holds
/// no buffer.
const READ_BYTES: usize = 16 << 10;

/// One connection's input.
pub(super) struct Input {
    pub(super) bytes: BytesMut,
    budget: Budget,
    held: Held,
    /// Bytes that `held` accounts for.
    counted: usize,
    /// When the first byte of an incomplete command was seen.
    begun: Option<Instant>,
    /// The client has shut down its sending side.
    is_over: bool,
}

impl Input {
    pub(super) fn new(budget: Budget) -> Input {
        let held = budget.hold();
        Input { bytes: BytesMut::new(), budget, held, counted: 0, begun: None, is_over: false }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether more may be read ahead while a command waits.
    pub(super) fn may_read_ahead(&mut self) -> bool {
        self.count();
        let most = if self.budget.is_exceeded() { INPUT_FREE_BYTES } else { TURN_BYTES_MAX };
        !self.is_over && self.bytes.len() < most
    }

    /// Commands were taken off: the rest begins now.
    pub(super) fn taken(&mut self) {
        self.begun = None;
        self.count();
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

    /// Whether the input may be kept.
    pub(super) fn admit(&mut self) -> Result<(), CloseReason> {
        self.count();
        let is_large = self.counted > INPUT_FREE_BYTES;
        if is_large && self.budget.is_exceeded() { Err(CloseReason::Crowded) } else { Ok(()) }
    }

    fn count(&mut self) {
        let (bytes, before) = (self.bytes.len(), self.counted);
        // A command that came whole was never counted: its connection leaves the shared count alone.
        match bytes.cmp(&before) {
            Ordering::Equal => return,
            Ordering::Greater => _ = self.held.take(bytes - before),
            Ordering::Less => self.held.give(before - bytes),
        }
        self.counted = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_that_is_read_ahead_is_counted() {
        let budget = Budget::new(10_000, "unfinished commands");
        let mut inputs = [(); 2].map(|()| Input::new(budget.clone()));
        inputs.iter_mut().for_each(|input| input.bytes.extend_from_slice(&[0; 6_000]));
        assert!(inputs[0].may_read_ahead());
        assert!(!inputs[1].may_read_ahead(), "all together hold too much");
        assert_eq!(budget.used(), 12_000);
        inputs[1].bytes.clear();
        assert!(inputs[1].may_read_ahead());
        assert_eq!(budget.used(), 6_000);
    }
}
