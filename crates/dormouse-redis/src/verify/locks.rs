//! A partition of locks: every lock has its end, every end its lock.

use bytes::Bytes;
use dormouse_core::error::Error;

use super::Work;
use super::ask::Failure;
use super::part::{Part, survive};
use crate::keys::lock_tag;
use crate::wire::Reader;

/// Locks are small.
const PAGE: u64 = 500;

impl Work {
    pub(super) async fn check_locks(&mut self, index: u16) -> Result<(), Error> {
        self.report.partitions += 1;
        let tag = lock_tag(index);
        let outcome = Part::of_locks(self, tag.clone()).check_locks().await;
        survive(outcome, &tag, self)
    }
}

impl Part<'_> {
    async fn check_locks(&mut self) -> Result<(), Failure> {
        let mut answer = self.ask_with("look", |_| vec![Bytes::new()]).await?;
        let counts = answer.text()?;
        // In d they are where the dead are.
        let mut from = Reader::new(&counts);
        from.bytes(24)?;
        self.work.report.locks += from.u64()?;
        let findings = answer.findings()?;
        self.heed(findings).await?;
        self.page("lock_ends", PAGE).await?;
        self.page("locks", PAGE).await
    }
}
