//! The register of topics: every topic has its shards and its name, and nobody else's.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use dormouse_core::error::Error;

use super::Work;
use super::ask::{Answer, Failure, Finding, number};
use super::kind::Kind;
use super::report::{Outcome, Problem, written};
use super::seen::Seen;
use crate::cluster::slot_of;
use crate::keys;
use crate::wire::Reader;

/// Topics of a page, each with up to 256 shards to be looked up.
const TOPICS: u64 = 8;
/// Entries of the other pages.
const PAGE: u64 = 500;

/// Which partitions a topic has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) first_shard: u32,
    pub(super) partitions: u16,
}

pub(super) type Topics = BTreeMap<String, Place>;

impl Work {
    /// Checks the register, and gives what is in it.
    pub(super) async fn check_register(&mut self, seen: &Seen) -> Result<Topics, Error> {
        let (mut topics, findings) = self.read_topics().await?;
        let unreadable = self.heed_topics(findings).await?;
        let orphans = self.read_page("shards").await?;
        let mut changed = self.heed_shards(orphans).await?;
        changed |= self.check_strays(seen, &topics).await?;
        changed |= self.heed_unreadable(unreadable).await?;
        if changed {
            topics = self.read_topics().await?.0;
        }
        let names = self.read_page("names").await?;
        for finding in names {
            let args = [Bytes::from_static(b"mend_name"), finding.subject.clone()];
            let outcome = self.mend_register(&args).await?;
            self.tell_topic(finding.kind, &finding.subject, &finding.detail, outcome);
        }
        Ok(topics)
    }

    async fn read_topics(&self) -> Result<(Topics, Vec<Finding>), Error> {
        let (mut topics, mut findings) = (Topics::new(), Vec::new());
        let mut cursor = Bytes::from_static(b"0");
        loop {
            let args = [Bytes::from_static(b"topics"), cursor, number(TOPICS)];
            let mut answer = self.ask_register(&args).await?;
            cursor = answer.text()?;
            loop {
                let topic = answer.text()?;
                if topic.is_empty() {
                    break;
                }
                let place = answer.text()?;
                let mut from = Reader::new(&place);
                let place = Place { first_shard: from.u32()?, partitions: from.u16()? };
                topics.insert(String::from_utf8_lossy(&topic).into_owned(), place);
            }
            findings.extend(answer.findings()?);
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
            let mut answer = self.ask_register(&args).await?;
            cursor = answer.text()?;
            answer.text()?;
            findings.extend(answer.findings()?);
            if cursor == "0" {
                return Ok(findings);
            }
        }
    }

    /// A topic gets what it lacks. Two with the same shard are for people to part: their ids are
    /// mixed. Gives those whose place cannot be read: what else is found may tell it.
    async fn heed_topics(&mut self, findings: Vec<Finding>) -> Result<Vec<Finding>, Error> {
        let mut unreadable = Vec::new();
        for finding in findings {
            let outcome = match finding.kind.name {
                "place_unreadable" => {
                    unreadable.push(finding);
                    continue;
                }
                "shards_shared" => Outcome::Wrong,
                _ => {
                    let args = [Bytes::from_static(b"mend_topic"), finding.subject.clone()];
                    self.mend_register(&args).await?
                }
            };
            self.tell_topic(finding.kind, &finding.subject, &finding.detail, outcome);
        }
        Ok(unreadable)
    }

    /// Whoever did not get its place back from its shards or its jobs gets a new one.
    async fn heed_unreadable(&mut self, findings: Vec<Finding>) -> Result<bool, Error> {
        let partitions = number(u64::from(self.tools.usual_partitions()));
        let mut changed = false;
        for finding in findings {
            let args = [Bytes::from_static(b"give"), finding.subject.clone(), partitions.clone()];
            let outcome = self.mend_register(&args).await?;
            changed |= outcome == Outcome::Mended;
            self.tell_topic(finding.kind, &finding.subject, &finding.detail, outcome);
        }
        Ok(changed)
    }

    /// Shards of a topic that has no place tell what its place was. True = places came back.
    async fn heed_shards(&mut self, findings: Vec<Finding>) -> Result<bool, Error> {
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
            let mut outcome = if self.options.mend { Outcome::Mended } else { Outcome::Wrong };
            if !restored.contains(&finding.subject) {
                let args = [Bytes::from_static(b"mend_shard"), finding.detail.clone()];
                outcome = self.mend_register(&args).await?;
            }
            let shard = Reader::new(&finding.detail).u32().unwrap_or_default();
            let detail = format!("shard {shard}");
            self.tell_topic(finding.kind, &finding.subject, detail.as_bytes(), outcome);
        }
        Ok(!restored.is_empty())
    }

    /// Gives a topic its place back. False = it has one, or others have its shards.
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
        Ok(self.mend_register(&args).await? == Outcome::Mended)
    }

    /// Mends, if that is wanted.
    pub(super) async fn mend_register(&self, args: &[Bytes]) -> Result<Outcome, Error> {
        if !self.options.mend {
            return Ok(Outcome::Wrong);
        }
        let done = self.ask_register(args).await?.text()? == "1";
        Ok(if done { Outcome::Mended } else { Outcome::Wrong })
    }

    pub(super) fn tell_topic(&mut self, kind: Kind, topic: &[u8], detail: &[u8], to: Outcome) {
        self.report.add(Problem {
            kind,
            place: written(kind.of, topic),
            subject: String::new(),
            detail: detail.escape_ascii().to_string(),
            outcome: to,
        });
    }

    async fn ask_register(&self, args: &[Bytes]) -> Result<Answer, Failure> {
        let tag = keys::REGISTER_TAG;
        let keys = ["t", "i", "n"].map(|name| keys::key(tag, name)).to_vec();
        let script = &self.tools.register;
        self.tools.run(slot_of(tag.as_bytes()), script, keys, args.to_vec()).await
    }
}
