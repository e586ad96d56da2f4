//! The output of a connection: replies are gathered and sent in one write, and what they grant is
//! given back if they are never sent.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use crate::limits::{INPUT_FREE_BYTES, OUTPUT_BYTES, STALL_MS_MAX};
use bytes::{Buf, BytesMut};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::budget::{Budget, Held};
use crate::client::Custody;

/// Time for the machine of a client that has disconnected to refuse what it is sent.
const REFUSAL_TIME: Duration = Duration::from_millis(100);

/// One connection's output.
pub(super) struct Output {
    pub(super) bytes: BytesMut,
    budget: Budget,
    /// The grants in `bytes`.
    custodies: Vec<Custody>,
}

impl Output {
    pub(super) fn new(budget: Budget) -> Output {
        Output { bytes: BytesMut::new(), budget, custodies: Vec::new() }
    }

    /// Keeps a grant in custody until it is sent.
    pub(super) fn carry(&mut self, custody: Option<Custody>) {
        self.custodies.extend(custody);
    }

    /// Whether the output should be sent before more is written.
    pub(super) fn is_large(&self) -> bool {
        self.bytes.len() >= OUTPUT_BYTES
    }

    /// Sends everything. It is an error if the client takes no byte for a while, or if the output
    /// is large while the unread replies of all clients exceed their budget.
    pub(super) async fn flush<S: AsyncWrite + Unpin>(&mut self, socket: &mut S) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        self.send(socket).await?;
        self.custodies.drain(..).for_each(Custody::hand_over);
        if self.bytes.capacity() > INPUT_FREE_BYTES {
            self.bytes = BytesMut::new();
        }
        Ok(())
    }

    /// As `flush`, for a client that has ended its sending side. It may have disconnected: then its
    /// machine refuses the bytes, which shows at the next write. So if something is granted, the
    /// last byte is sent a moment later.
    pub(super) async fn flush_last<S: AsyncWrite + Unpin>(
        &mut self,
        socket: &mut S,
    ) -> io::Result<()> {
        if !self.custodies.is_empty() && self.bytes.len() > 1 {
            let last = self.bytes.split_off(self.bytes.len() - 1);
            self.send(socket).await?;
            tokio::time::sleep(REFUSAL_TIME).await;
            self.bytes.unsplit(last);
        }
        self.flush(socket).await
    }

    async fn send<S: AsyncWrite + Unpin>(&mut self, socket: &mut S) -> io::Result<()> {
        let _held = self.hold()?;
        while self.bytes.has_remaining() {
            match in_time(socket.write(&self.bytes)).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => self.bytes.advance(sent),
            }
        }
        // TLS may hold the bytes back until it is flushed.
        in_time(socket.flush()).await
    }

    fn hold(&self) -> io::Result<Held> {
        let mut held = self.budget.hold();
        held.take(self.bytes.len());
        if self.bytes.len() > 2 * OUTPUT_BYTES && self.budget.is_exceeded() {
            return Err(io::Error::other("clients have too many replies to read"));
        }
        Ok(held)
    }
}

/// The output of a future that is ready already.
pub(super) async fn ready<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    poll_fn(|cx| match Pin::new(&mut *future).poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

async fn in_time<T>(done: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let mut done = pin!(done);
    // Almost every write is done at once: only one that is not needs a clock and a timer.
    if let Some(done) = ready(&mut done).await {
        return done;
    }
    let stall = Duration::from_millis(STALL_MS_MAX);
    let in_time = tokio::time::timeout(stall, done).await;
    in_time.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

#[cfg(test)]
mod tests {
    use std::task::Context;

    use super::*;

    /// Takes everything and sends nothing, as TLS does for a client that does not read.
    struct Stuck;

    impl AsyncWrite for Stuck {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_times_out_behind_tls_too() {
        let mut output = Output::new(Budget::new(1 << 20, "answers"));
        output.bytes.extend_from_slice(b"+PONG\r\n");
        let error = output.flush(&mut Stuck).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_large_output_fails_while_too_much_is_unread() {
        let budget = Budget::new(1 << 20, "answers");
        let mut unread = budget.hold();
        unread.take(1 << 20);
        let mut output = Output::new(budget.clone());
        output.bytes.resize(3 * OUTPUT_BYTES, 0);
        assert!(output.flush(&mut tokio::io::sink()).await.is_err());
        drop(unread);
        output.flush(&mut tokio::io::sink()).await.unwrap();
        assert_eq!(budget.used(), 0);
    }
}
