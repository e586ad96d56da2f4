//! The greatest number that a job of a partition got: the books must know of it before a number is
//! given, or a job would get the id of another, and take its place.

use bytes::Bytes;

use super::ask::{Failure, Finding, number};
use super::part::Part;
use super::portions;

/// Entries of a page, if they are small.
const PAGE: u64 = 500;

impl Part<'_> {
    /// The greatest number, if mending these findings lets one be given: by servers, which go on
    /// when the books are good again, or to a job that needs an id of here.
    pub(super) async fn number_for(
        &mut self,
        findings: &[Finding],
    ) -> Result<Option<u64>, Failure> {
        let gives = |finding: &Finding| match finding.kind.name {
            "books_unreadable" => !self.holds_locks,
            "id_foreign" => !self.number_is_sure,
            _ => false,
        };
        if !findings.iter().any(gives) {
            return Ok(None);
        }
        let greatest = self.greatest_number("j").await?.max(self.greatest_number("k").await?);
        self.number_is_sure = true;
        Ok(Some(greatest))
    }

    /// Of all ids in this hash. It lists its entries in no order, so those of a page are about as
    /// large as those before it; the first page is of one.
    async fn greatest_number(&mut self, hash: &'static str) -> Result<u64, Failure> {
        let (mut greatest, mut entries, mut bytes) = (0, 1, portions::BYTES);
        let mut cursor = Bytes::from_static(b"0");
        loop {
            let count = number(portions::at_once(bytes / entries, PAGE));
            let args = [Bytes::from_static(hash.as_bytes()), cursor, count];
            let mut answer = self.ask("numbers", &args).await?;
            cursor = answer.text()?;
            greatest = greatest.max(answer.number()?);
            entries += answer.number()?;
            bytes += answer.number()?;
            if cursor == "0" {
                return Ok(greatest);
            }
        }
    }
}
