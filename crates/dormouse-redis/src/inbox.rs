//! What is under way is bounded: beyond it, puts are turned away first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dormouse_core::backend::Request;
use dormouse_core::command::Command;
use dormouse_core::error::{Code, Error};
use dormouse_core::limits::{INBOX_BYTES_MAX, INBOX_RELIEF, INBOX_REQUESTS_MAX};

/// What is under way.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    requests: AtomicUsize,
    bytes: AtomicUsize,
}

/// What a batch counts for until it is answered.
#[derive(Debug)]
pub(crate) struct Admission {
    inbox: Arc<Inbox>,
    requests: usize,
    bytes: usize,
}

impl Inbox {
    /// Lets a batch in, or says `busy`.
    pub(crate) fn admit(self: &Arc<Inbox>, batch: &[Request]) -> Result<Admission, Error> {
        let waits = |request: &&Request| match &request.command {
            Command::Reserve(reserve) => reserve.wait_ms > 0,
            Command::Lock(lock) => lock.wait_ms > 0,
            _ => false,
        };
        let requests = batch.len() - batch.iter().filter(waits).count();
        let puts = batch.iter().filter_map(|request| match &request.command {
            Command::Put(puts) => Some(puts.iter().map(|put| put.body.len()).sum::<usize>()),
            _ => None,
        });
        let (mut bytes, mut has_put) = (0, false);
        for body_bytes in puts {
            bytes += body_bytes;
            has_put = true;
        }
        let admission = Admission { inbox: Arc::clone(self), requests, bytes };
        let under_way = self.requests.fetch_add(requests, Ordering::Relaxed) + requests;
        let bytes_under_way = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Batches without a put take work away: there is more room for them.
        let relief = if has_put { 1 } else { INBOX_RELIEF };
        if under_way > INBOX_REQUESTS_MAX * relief || bytes_under_way > INBOX_BYTES_MAX * relief {
            return Err(Error::new(
                Code::Busy,
                format!(
                    "{under_way} requests of {bytes_under_way} bytes are under way to Redis, the \
                     limit is {INBOX_REQUESTS_MAX} or {INBOX_BYTES_MAX} bytes; try again"
                ),
            ));
        }
        Ok(admission)
    }

    /// Requests under way.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.inbox.requests.fetch_sub(self.requests, Ordering::Relaxed);
        self.inbox.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
