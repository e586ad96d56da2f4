//! The calls of scripts that a partition has under way, at most one per sequence.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use dormouse_core::error::Error;

use super::decode::BatchStatus;
use crate::cluster::SentFlag;

/// What became of a call; `was_resent`: it was sent more than once.
pub(super) struct CallEnd {
    pub(super) status: Result<BatchStatus, Error>,
    pub(super) was_resent: bool,
}

type CallFuture<'a> = Pin<Box<dyn Future<Output = CallEnd> + 'a>>;

/// A batch under way. It outlives a call that ended without effect and is followed by another.
pub(super) struct BatchCall<'a> {
    sequence: u8,
    number: u64,
    /// Whether any copy of the batch was sent.
    pub(super) sent_flag: SentFlag,
    /// If the script has named them, the only priorities that may be given up.
    pub(super) free: Option<Vec<u32>>,
    pub(super) is_timed_out: bool,
    future: Option<CallFuture<'a>>,
}

#[derive(Default)]
pub(super) struct Calls<'a> {
    batches: Vec<BatchCall<'a>>,
    /// A call that ended while others were started.
    ended: Option<(u8, CallEnd)>,
}

impl<'a> Calls<'a> {
    /// Whether no call is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.ended.is_none() && self.batches.iter().all(|batch| batch.future.is_none())
    }

    /// The batch with this number, with what is known from its earlier calls.
    pub(super) fn batch(&mut self, sequence: u8, number: u64) -> &mut BatchCall<'a> {
        if self.get(sequence).is_none_or(|batch| batch.number != number) {
            self.batches.retain(|batch| batch.sequence != sequence);
            self.batches.push(BatchCall {
                sequence,
                number,
                sent_flag: SentFlag::default(),
                free: None,
                is_timed_out: false,
                future: None,
            });
        }
        let last = self.batches.len() - 1;
        let index = self.batches.iter().position(|batch| batch.sequence == sequence);
        &mut self.batches[index.unwrap_or(last)]
    }

    pub(super) fn get(&mut self, sequence: u8) -> Option<&mut BatchCall<'a>> {
        self.batches.iter_mut().find(|batch| batch.sequence == sequence)
    }

    /// Starts all calls, and lets their bytes be written.
    pub(super) async fn start(&mut self) {
        if self.ended.is_none() {
            self.ended = poll_fn(|cx| match self.poll(cx) {
                Poll::Ready(ended) => Poll::Ready(Some(ended)),
                Poll::Pending => Poll::Ready(None),
            })
            .await;
        }
        tokio::task::yield_now().await;
    }

    /// Waits for the next call to end; of several, the one sent first.
    pub(super) async fn next_end(&mut self) -> (u8, CallEnd) {
        match self.ended.take() {
            Some(ended) => ended,
            None => poll_fn(|cx| self.poll(cx)).await,
        }
    }

    fn poll(&mut self, cx: &mut std::task::Context<'_>) -> Poll<(u8, CallEnd)> {
        for batch in &mut self.batches {
            if let Some(future) = &mut batch.future
                && let Poll::Ready(end) = future.as_mut().poll(cx)
            {
                batch.future = None;
                return Poll::Ready((batch.sequence, end));
            }
        }
        Poll::Pending
    }
}

impl<'a> BatchCall<'a> {
    pub(super) fn call(&mut self, future: impl Future<Output = CallEnd> + 'a) {
        self.future = Some(Box::pin(future));
    }

    /// Drops the call: it is sent no more.
    pub(super) fn cancel(&mut self) {
        self.future = None;
    }
}
