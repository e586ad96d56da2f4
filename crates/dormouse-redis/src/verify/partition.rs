//! One partition of a topic: its books, its places, its progress, its jobs, its keys.

use std::collections::BTreeSet;

use bytes::Bytes;
use dormouse_core::error::Error;

use super::Work;
use super::ask::{Failure, Finding, number};
use super::kind::CONFIG_UNREADABLE;
use super::part::{Part, survive};
use super::portions;
use super::report::Outcome;
use crate::keys::topic_tag;
use crate::wire::Reader;

/// Entries of a page of which little is read.
const PAGE: u64 = 500;

impl Work {
    pub(super) async fn check_partition(
        &mut self,
        topic: &str,
        index: u16,
        shard: u32,
        found: BTreeSet<u32>,
    ) -> Result<(), Error> {
        self.report.partitions += 1;
        let tag = topic_tag(topic, index);
        let outcome = Part::new(self, tag.clone(), shard, found).check().await;
        survive(outcome, &tag, self)
    }
}

impl Part<'_> {
    async fn check(&mut self) -> Result<(), Failure> {
        self.check_config().await?;
        let is_empty = self.look().await?;
        if is_empty {
            return self.check_jobs().await;
        }
        self.page("progress", PAGE).await?;
        self.check_jobs().await?;
        self.check_keys().await?;
        self.page("holds", PAGE).await
    }

    /// The configuration can be read. What was found of it is kept; settings that cannot be read
    /// are lost.
    async fn check_config(&mut self) -> Result<(), Failure> {
        self.ask("sample", &[]).await?;
        if !self.config_is_bad {
            return Ok(());
        }
        let mut outcome = Outcome::Wrong;
        if self.work.options.mend {
            self.grow(&self.priorities()).await?;
            outcome = Outcome::Mended;
        }
        let finding =
            Finding { kind: CONFIG_UNREADABLE, subject: Bytes::new(), detail: Bytes::new() };
        self.tell(finding, outcome);
        Ok(())
    }

    /// Counts, and checks what one look can tell. True = there is nothing in the partition.
    async fn look(&mut self) -> Result<bool, Failure> {
        let mut answer = self.ask_with("look", |part| vec![part.unlisted()]).await?;
        let counts = answer.text()?;
        let mut from = Reader::new(&counts);
        let report = &mut self.work.report;
        let mut total = 0;
        for count in [
            &mut report.delayed,
            &mut report.ready,
            &mut report.leased,
            &mut report.dead,
            &mut report.keys,
            &mut report.holds,
        ] {
            let value = from.u64()?;
            *count += value;
            total += value;
        }
        let (jobs, progress) = (from.u64()?, from.u64()?);
        let findings = answer.findings()?;
        self.heed(findings).await?;
        Ok(total + jobs + progress == 0)
    }

    /// Every key leads to its job, or is held.
    async fn check_keys(&mut self) -> Result<(), Failure> {
        let mut cursor = Bytes::from_static(b"0");
        loop {
            let mut answer = self.ask("keys", &[cursor, number(PAGE)]).await?;
            cursor = answer.text()?;
            let keys = portions::read(&mut answer)?;
            let findings = answer.findings()?;
            self.heed(findings).await?;
            for keys in portions::portions(&keys) {
                let findings = self.ask("keys_of", &keys).await?.findings()?;
                self.heed(findings).await?;
            }
            if cursor == "0" {
                return Ok(());
            }
        }
    }

    /// All pages of a verb that takes nothing else.
    pub(super) async fn page(&mut self, verb: &str, count: u64) -> Result<(), Failure> {
        let mut cursor = Bytes::from_static(b"0");
        loop {
            let mut answer = self.ask(verb, &[cursor, number(count)]).await?;
            cursor = answer.text()?;
            let findings = answer.findings()?;
            self.heed(findings).await?;
            if cursor == "0" {
                return Ok(());
            }
        }
    }
}
