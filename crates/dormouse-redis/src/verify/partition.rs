//! Checks one partition of a topic: its header, schedules, jobs, progress, keys and holds.

use std::collections::BTreeSet;

use bytes::Bytes;
use dormouse_core::error::Error;

use super::Verifier;
use super::call::{Failure, Finding};
use super::checker::{Checker, note_failure};
use super::kind::{CONFIG_UNREADABLE, SHARD_FOREIGN};
use super::portions;
use super::report::ProblemStatus;
use crate::keys::topic_tag;
use crate::wire::{Reader, number};

/// Entries in a page of which little is read.
const PAGE: u64 = 500;
/// The same where each entry reads a record.
const GROUPS_PAGE: u64 = 32;

impl Verifier {
    pub(super) async fn check_partition(
        &mut self,
        topic: &str,
        index: u16,
        shard: u32,
        found: BTreeSet<u32>,
    ) -> Result<(), Error> {
        self.report.partitions += 1;
        let tag = topic_tag(topic, index);
        let result = Checker::new(self, tag.clone(), shard, found).check().await;
        note_failure(result, &tag, self)
    }
}

impl Checker<'_> {
    async fn check(&mut self) -> Result<(), Failure> {
        self.check_config().await?;
        let is_empty = self.count().await?;
        for verb in ["deadlines", "done", "letters", "ticks", "schedules"] {
            self.page(verb, PAGE).await?;
        }
        for verb in ["slots", "parked"] {
            self.page(verb, GROUPS_PAGE).await?;
        }
        if is_empty {
            return self.check_jobs().await;
        }
        self.page("progress", PAGE).await?;
        self.check_jobs().await?;
        self.check_keys().await?;
        self.page("holds", PAGE).await
    }

    /// Checks that the configuration can be read, and is one of this registration. Mending keeps
    /// its valid parts; settings that cannot be read are lost.
    async fn check_config(&mut self) -> Result<(), Failure> {
        self.call("sample", &[]).await?;
        let kind = match self.config_is_invalid {
            true => CONFIG_UNREADABLE,
            false if self.has_foreign_shard() => SHARD_FOREIGN,
            false => return Ok(()),
        };
        let mut status = ProblemStatus::Wrong;
        if self.verifier.options.mend {
            self.add_priorities(&self.priorities()).await?;
            status = ProblemStatus::Mended;
        }
        let finding = Finding { kind, subject: Bytes::new(), detail: Bytes::new() };
        self.report(finding, status);
        Ok(())
    }

    /// Counts the entries, and checks the header. True = the partition is empty.
    async fn count(&mut self) -> Result<bool, Failure> {
        let mut reply = self.call_with("look", |checker| vec![checker.unlisted()]).await?;
        let counts = reply.text()?;
        let mut from = Reader::new(&counts);
        let report = &mut self.verifier.report;
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
        self.handle(reply.findings()?).await?;
        Ok(total + jobs + progress == 0)
    }

    /// Checks that every key points to its job, or is held.
    async fn check_keys(&mut self) -> Result<(), Failure> {
        let mut cursor = Bytes::from_static(b"0");
        loop {
            let mut reply = self.call("keys", &[cursor, number(PAGE)]).await?;
            cursor = reply.text()?;
            let keys = portions::read(&mut reply)?;
            self.handle(reply.findings()?).await?;
            for keys in portions::portions(&keys) {
                let findings = self.call("keys_of", &keys).await?.findings()?;
                self.handle(findings).await?;
            }
            if cursor == "0" {
                return Ok(());
            }
        }
    }

    /// Checks all pages of a verb without other arguments.
    pub(super) async fn page(&mut self, verb: &str, count: u64) -> Result<(), Failure> {
        let mut cursor = Bytes::from_static(b"0");
        loop {
            let mut reply = self.call(verb, &[cursor, number(count)]).await?;
            cursor = reply.text()?;
            self.handle(reply.findings()?).await?;
            if cursor == "0" {
                return Ok(());
            }
        }
    }
}
