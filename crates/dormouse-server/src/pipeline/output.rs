//! What goes to a client: gathered, sent in one piece, and given back if it never left.

use std::io;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use dormouse_core::limits::{HTTP_STALL_MS_MAX, INPUT_FREE_BYTES, OUTPUT_BYTES};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::budget::{Budget, Held};
use crate::desk::Custody;

/// One connection's output.
pub(super) struct Output {
    pub(super) bytes: BytesMut,
    budget: Budget,
    /// Grants that are told in `bytes`.
    custodies: Vec<Custody>,
}

impl Output {
    pub(super) fn new(budget: Budget) -> Output {
        Output { bytes: BytesMut::new(), budget, custodies: Vec::new() }
    }

    /// Takes charge of a grant until it is sent.
    pub(super) fn carry(&mut self, custody: Custody) {
        if !custody.is_empty() {
            self.custodies.push(custody);
        }
    }

    /// Whether there is enough to be sent before more is written.
    pub(super) fn is_large(&self) -> bool {
        self.bytes.len() >= OUTPUT_BYTES
    }

    /// Sends everything; who takes nothing of it for long is given up.
    pub(super) async fn flush<S: AsyncWrite + Unpin>(&mut self, socket: &mut S) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let _held = self.hold();
        while self.bytes.has_remaining() {
            let stall = Duration::from_millis(HTTP_STALL_MS_MAX);
            let written = tokio::time::timeout(stall, socket.write(&self.bytes));
            match written.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => self.bytes.advance(sent),
            }
        }
        socket.flush().await?;
        self.custodies.drain(..).for_each(Custody::hand_over);
        if self.bytes.capacity() > INPUT_FREE_BYTES {
            self.bytes = BytesMut::new();
        }
        Ok(())
    }

    fn hold(&self) -> Held {
        let mut held = self.budget.hold();
        held.take(self.bytes.len());
        held
    }
}
