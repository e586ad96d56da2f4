//! Checks a partition of locks: every lock has an expiry, and every expiry a lock.

use bytes::Bytes;
use dormouse_core::error::Error;

use super::Verifier;
use super::call::Failure;
use super::checker::{Checker, note_failure};
use crate::keys::lock_tag;
use crate::wire::Reader;

/// Locks in a page; they are small.
const PAGE: u64 = 500;

impl Verifier {
    pub(super) async fn check_locks(&mut self, index: u16) -> Result<(), Error> {
        self.report.partitions += 1;
        let tag = lock_tag(index);
        let result = Checker::of_locks(self, tag.clone()).check_locks().await;
        note_failure(result, &tag, self)
    }
}

impl Checker<'_> {
    async fn check_locks(&mut self) -> Result<(), Failure> {
        let mut reply = self.call_with("look", |_| vec![Bytes::new()]).await?;
        let counts = reply.text()?;
        // Locks are in `d`, as dead jobs are in other partitions; the last count is of those that
        // have not expired.
        let mut from = Reader::new(&counts);
        from.bytes(64)?;
        self.verifier.report.locks += from.u64()?;
        self.handle(reply.findings()?).await?;
        self.page("lock_ends", PAGE).await?;
        self.page("locks", PAGE).await
    }
}
