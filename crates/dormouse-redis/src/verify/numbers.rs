//! The greatest job number of a partition. The header must have it before a new number is given, or
//! a new job would overwrite another one with the same id.

use bytes::Bytes;

use super::call::{Failure, Finding};
use super::checker::Checker;
use super::portions;
use crate::wire::number;

/// Entries in a page, if they are small.
const PAGE: u64 = 500;

impl Checker<'_> {
    /// The greatest number, if mending these findings lets new numbers be given: by servers, which
    /// continue when the header is readable again, or to a job that needs a new id.
    pub(super) async fn number_for(
        &mut self,
        findings: &[Finding],
    ) -> Result<Option<u64>, Failure> {
        let gives = |finding: &Finding| match finding.kind.name {
            "books_unreadable" => !self.holds_locks,
            "id_foreign" => !self.number_is_known,
            _ => false,
        };
        if !findings.iter().any(gives) {
            return Ok(None);
        }
        let greatest = self.greatest_number("j").await?.max(self.greatest_number("k").await?);
        self.number_is_known = true;
        Ok(Some(greatest))
    }

    /// The greatest number of all ids in this hash. Redis lists entries in random order, so a page
    /// is about as large as those before it; the first page has one entry.
    async fn greatest_number(&mut self, hash: &'static str) -> Result<u64, Failure> {
        let (mut greatest, mut entries, mut bytes) = (0, 1, portions::BYTES);
        let mut cursor = Bytes::from_static(b"0");
        loop {
            let count = number(portions::at_once(bytes / entries, PAGE));
            let args = [Bytes::from_static(hash.as_bytes()), cursor, count];
            let mut reply = self.call("numbers", &args).await?;
            cursor = reply.text()?;
            greatest = greatest.max(reply.number()?);
            entries += reply.number()?;
            bytes += reply.number()?;
            if cursor == "0" {
                return Ok(greatest);
            }
        }
    }
}
