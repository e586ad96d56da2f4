//! Checks the register of topics: every topic has its own shards and its name in the list.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use dormouse_core::error::Error;

use super::Verifier;
use super::call::{Failure, Finding, ReplyParts};
use super::key_listing::KeyListing;
use super::kind::Kind;
use super::report::{Problem, ProblemStatus, display_subject};
use crate::cluster::slot_of;
use crate::keys;
use crate::wire::{Reader, number};

/// Topics in a page; each has up to 256 shards to look up.
const TOPICS: u64 = 8;
/// Entries in the other pages.
const PAGE: u64 = 500;

/// The partitions of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Registration {
    pub(super) first_shard: u32,
    pub(super) partitions: u16,
}

pub(super) type Topics = BTreeMap<String, Registration>;

impl Verifier {
    /// Checks the register. Returns its topics.
    pub(super) async fn check_register(&mut self, listing: &KeyListing) -> Result<Topics, Error> {
        let (mut topics, findings) = self.read_topics().await?;
        let unreadable = self.mend_found_topics(findings).await?;
        let orphans = self.read_page("shards").await?;
        let mut changed = self.mend_found_shards(orphans).await?;
        changed |= self.check_unregistered(listing, &topics).await?;
        changed |= self.mend_found_unreadable(unreadable).await?;
        if changed {
            topics = self.read_topics().await?.0;
        }
        let names = self.read_page("names").await?;
        for finding in names {
            let args = [Bytes::from_static(b"mend_name"), finding.subject.clone()];
            let status = self.mend_register(&args).await?;
            self.report_topic(finding.kind, &finding.subject, &finding.detail, status);
        }
        Ok(topics)
    }

    async fn read_topics(&self) -> Result<(Topics, Vec<Finding>), Error> {
        let (mut topics, mut findings) = (Topics::new(), Vec::new());
        let mut cursor = Bytes::from_static(b"0");
        loop {
            let args = [Bytes::from_static(b"topics"), cursor, number(TOPICS)];
            let mut reply = self.call_register(&args).await?;
            cursor = reply.text()?;
            loop {
                let topic = reply.text()?;
                if topic.is_empty() {
                    break;
                }
                let registration = reply.text()?;
                let mut from = Reader::new(&registration);
                let registration =
                    Registration { first_shard: from.u32()?, partitions: from.u16()? };
                topics.insert(String::from_utf8_lossy(&topic).into_owned(), registration);
            }
            findings.extend(reply.findings()?);
            if cursor == "0" {
                return Ok((topics, findings));
            }
        }
    }

    async fn read_page(&self, verb: &'static str) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        let mut cursor = Bytes::from_static(b"0");
        loop {
            let args = [Bytes::from_static(verb.as_bytes()), cursor, number(PAGE)];
            let mut reply = self.call_register(&args).await?;
            cursor = reply.text()?;
            reply.text()?;
            findings.extend(reply.findings()?);
            if cursor == "0" {
                return Ok(findings);
            }
        }
    }

    /// Adds what a topic lacks. Two topics with the same shard are left to the operator: their ids
    /// are mixed. Returns the findings on unreadable registrations: other data may restore them.
    async fn mend_found_topics(&mut self, findings: Vec<Finding>) -> Result<Vec<Finding>, Error> {
        let mut unreadable = Vec::new();
        for finding in findings {
            let status = match finding.kind.name {
                "place_unreadable" => {
                    unreadable.push(finding);
                    continue;
                }
                "shards_shared" => ProblemStatus::Wrong,
                _ => {
                    let args = [Bytes::from_static(b"mend_topic"), finding.subject.clone()];
                    self.mend_register(&args).await?
                }
            };
            self.report_topic(finding.kind, &finding.subject, &finding.detail, status);
        }
        Ok(unreadable)
    }

    /// Topics that could not be restored from their shards or jobs get new shards.
    async fn mend_found_unreadable(&mut self, findings: Vec<Finding>) -> Result<bool, Error> {
        let partitions = number(u64::from(self.tools.usual_partitions()));
        let mut changed = false;
        for finding in findings {
            let args = [Bytes::from_static(b"give"), finding.subject.clone(), partitions.clone()];
            let status = self.mend_register(&args).await?;
            changed |= status == ProblemStatus::Mended;
            self.report_topic(finding.kind, &finding.subject, &finding.detail, status);
        }
        Ok(changed)
    }

    /// Restores registrations from shards of unregistered topics. True = some were restored.
    async fn mend_found_shards(&mut self, findings: Vec<Finding>) -> Result<bool, Error> {
        let mut shards: BTreeMap<Bytes, BTreeSet<u32>> = BTreeMap::new();
        for finding in &findings {
            let shard = Reader::new(&finding.detail).u32().unwrap_or_default();
            shards.entry(finding.subject.clone()).or_default().insert(shard);
        }
        let mut restored = BTreeSet::new();
        for (topic, shards) in &shards {
            let (Some(&first), Some(&last)) = (shards.first(), shards.last()) else { continue };
            let is_whole = (last - first) as usize == shards.len() - 1 && first > 0;
            if is_whole && self.restore(topic, first, shards.len() as u64).await? {
                restored.insert(topic.clone());
            }
        }
        for finding in findings {
            let mut status =
                if self.options.mend { ProblemStatus::Mended } else { ProblemStatus::Wrong };
            if !restored.contains(&finding.subject) {
                let args = [Bytes::from_static(b"mend_shard"), finding.detail.clone()];
                status = self.mend_register(&args).await?;
            }
            let shard = Reader::new(&finding.detail).u32().unwrap_or_default();
            let detail = format!("shard {shard}");
            self.report_topic(finding.kind, &finding.subject, detail.as_bytes(), status);
        }
        Ok(!restored.is_empty())
    }

    /// Registers a topic again. False = it is registered, or others have its shards.
    pub(super) async fn restore(
        &mut self,
        topic: &[u8],
        first: u32,
        partitions: u64,
    ) -> Result<bool, Error> {
        let args = [
            Bytes::from_static(b"restore"),
            Bytes::copy_from_slice(topic),
            number(u64::from(first)),
            number(partitions),
        ];
        Ok(self.mend_register(&args).await? == ProblemStatus::Mended)
    }

    /// Mends the register, if the options ask for it.
    pub(super) async fn mend_register(&self, args: &[Bytes]) -> Result<ProblemStatus, Error> {
        if !self.options.mend {
            return Ok(ProblemStatus::Wrong);
        }
        let done = self.call_register(args).await?.text()? == "1";
        Ok(if done { ProblemStatus::Mended } else { ProblemStatus::Wrong })
    }

    pub(super) fn report_topic(
        &mut self,
        kind: Kind,
        topic: &[u8],
        detail: &[u8],
        status: ProblemStatus,
    ) {
        self.report.add(Problem {
            kind,
            place: display_subject(kind.scope, topic),
            subject: String::new(),
            detail: detail.escape_ascii().to_string(),
            outcome: status,
        });
    }

    async fn call_register(&self, args: &[Bytes]) -> Result<ReplyParts, Failure> {
        let tag = keys::REGISTER_TAG;
        let keys = ["t", "i", "n"].map(|name| keys::key(tag, name)).to_vec();
        let script = &self.tools.register;
        self.tools.run(slot_of(tag.as_bytes()), script, keys, args.to_vec()).await
    }
}
