//! The check of one partition: what is known of it, and how it is read and mended.

use std::collections::{BTreeSet, HashSet};

use bytes::Bytes;
use dormouse_core::error::Error;

use super::Verifier;
use super::call::{Failure, Finding, ReplyParts};
use super::kind::{Kind, Scope};
use super::portions;
use super::report::{Problem, ProblemStatus, display_subject};
use crate::cluster::slot_of;
use crate::keys;
use crate::wire::config::Config;
use crate::wire::{Writer, number, packed};

/// Jobs that one script call mends.
const MENDED_AT_ONCE: u64 = 16;
/// Bytes of a record before any was read. Records may be large: the first page is small.
const FIRST_GUESS: u64 = 32 << 10;

/// A partition that is being checked.
pub(super) struct Checker<'a> {
    pub(super) verifier: &'a mut Verifier,
    pub(super) tag: String,
    shard: Bytes,
    shard_no: u32,
    pub(super) holds_locks: bool,
    /// As Redis has it: it may not be a number.
    version: Bytes,
    pub(super) config: Config,
    pub(super) config_is_invalid: bool,
    /// Priorities that had a zset when keys were listed.
    found: BTreeSet<u32>,
    reported: HashSet<(&'static str, Bytes)>,
    /// The number of mends so far.
    pub(super) mends: u64,
    /// The header has the greatest job number.
    pub(super) number_is_known: bool,
    /// Average bytes of the records read last.
    pub(super) record_bytes: u64,
}

/// What was mended, by kind and subject.
#[derive(Default)]
struct MendResult {
    done: HashSet<(&'static str, Bytes)>,
    /// Subjects that could not be mended.
    left: HashSet<Bytes>,
}

impl<'a> Checker<'a> {
    /// A partition of a topic.
    pub(super) fn new(
        verifier: &'a mut Verifier,
        tag: String,
        shard: u32,
        found: BTreeSet<u32>,
    ) -> Self {
        let [_, high, mid, low] = shard.to_be_bytes();
        Checker {
            verifier,
            tag,
            shard: Bytes::copy_from_slice(&[high, mid, low]),
            shard_no: shard,
            holds_locks: false,
            version: Bytes::from_static(b"0"),
            config: Config::default(),
            config_is_invalid: false,
            found,
            reported: HashSet::new(),
            mends: 0,
            number_is_known: false,
            record_bytes: FIRST_GUESS,
        }
    }

    /// A partition of locks.
    pub(super) fn of_locks(verifier: &'a mut Verifier, tag: String) -> Self {
        Checker { holds_locks: true, ..Checker::new(verifier, tag, 0, BTreeSet::new()) }
    }

    /// Whether servers of another registration have used the partition.
    pub(super) fn has_foreign_shard(&self) -> bool {
        self.config.shard != 0 && self.config.shard != self.shard_no
    }

    /// Whether any problem was found so far.
    pub(super) fn has_problems(&self) -> bool {
        !self.reported.is_empty()
    }

    /// Priorities that are configured or have a zset, ascending.
    pub(super) fn priorities(&self) -> BTreeSet<u32> {
        self.config.priorities.iter().chain(&self.found).copied().collect()
    }

    /// Priorities that have a zset, but are not configured.
    pub(super) fn unlisted(&self) -> Bytes {
        let listed = &self.config.priorities;
        packed(self.found.iter().filter(|priority| !listed.contains(priority)))
    }

    /// Calls a verb.
    pub(super) async fn call(&mut self, verb: &str, args: &[Bytes]) -> Result<ReplyParts, Failure> {
        self.call_with(verb, |_| args.to_vec()).await
    }

    /// Calls a verb whose arguments depend on the configuration, which may change at any time.
    pub(super) async fn call_with(
        &mut self,
        verb: &str,
        args: impl Fn(&Self) -> Vec<Bytes>,
    ) -> Result<ReplyParts, Failure> {
        loop {
            let args = args(self);
            let (keys, args) = (self.keys(), self.args(verb, args));
            let tools = &self.verifier.tools;
            let slot = slot_of(self.tag.as_bytes());
            let mut reply = tools.run(slot, &tools.partition, keys, args).await?;
            if reply.text()? == "done" {
                return Ok(reply);
            }
            let (version, text) = (reply.text()?, reply.text()?);
            self.set_config(version, &text);
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let mut all = keys::fixed(&self.tag).to_vec();
        all.extend(self.priorities().iter().map(|&priority| keys::priority(&self.tag, priority)));
        all.push(keys::key(&self.tag, "x"));
        all
    }

    /// ARGV as in lib.lua, without a sequence: verify scripts save no answers.
    fn args(&self, verb: &str, args: Vec<Bytes>) -> Vec<Bytes> {
        let none = Bytes::new;
        let mut all = vec![
            none(),
            none(),
            self.version.clone(),
            none(),
            none(),
            packed(&self.priorities()),
            none(),
            self.shard.clone(),
            none(),
            none(),
            keys::channel(&self.tag),
            none(),
            none(),
            none(),
            none(),
            Bytes::copy_from_slice(verb.as_bytes()),
            number(args.len() as u64),
        ];
        all.extend(args);
        all
    }

    /// Takes over the configuration. Of an invalid one, the valid parts are used.
    fn set_config(&mut self, version: Bytes, text: &[u8]) {
        let parsed = std::str::from_utf8(&version).ok().and_then(|text| text.parse::<u64>().ok());
        let config = Config::decode(parsed.unwrap_or(0), text);
        self.config_is_invalid = parsed.is_none() || config.is_err();
        self.config = config.unwrap_or_default();
        let priorities = &mut self.config.priorities;
        if !priorities.is_sorted_by(|a, b| a < b) {
            self.config_is_invalid = true;
            priorities.sort_unstable();
            priorities.dedup();
        }
        self.version = version;
    }

    /// Adds these priorities to the configuration in Redis.
    pub(super) async fn add_priorities(
        &mut self,
        priorities: &BTreeSet<u32>,
    ) -> Result<(), Failure> {
        let shard = self.shard_no;
        let with = |config: &Config| {
            let mut config = config.clone();
            config.priorities.extend(priorities);
            config.priorities.sort_unstable();
            config.priorities.dedup();
            config.shard = shard;
            config.encode()
        };
        let version = number(next_version());
        self.call_with("mend_config", |checker| vec![version.clone(), with(&checker.config)])
            .await?;
        let text = with(&self.config);
        self.mends += 1;
        self.set_config(version, &text);
        Ok(())
    }

    /// Reports the findings, and mends them if that is wanted.
    pub(super) async fn handle(&mut self, findings: Vec<Finding>) -> Result<(), Failure> {
        let mends = self.verifier.options.mend;
        let mended = if mends { self.mend(&findings).await? } else { MendResult::default() };
        for finding in findings {
            let status = if !mends || mended.left.contains(&finding.subject) {
                ProblemStatus::Wrong
            } else if mended.done.contains(&(finding.kind.name, finding.subject.clone())) {
                ProblemStatus::Mended
            } else {
                ProblemStatus::Gone
            };
            self.report(finding, status);
        }
        Ok(())
    }

    /// Reports a problem, unless it has been: pages may contain the same job twice.
    pub(super) fn report(&mut self, finding: Finding, status: ProblemStatus) {
        let Finding { mut kind, subject, detail } = finding;
        let whose = if kind.is_partition_wide() { Bytes::new() } else { subject.clone() };
        if !self.reported.insert((kind.name, whose)) {
            return;
        }
        if self.holds_locks && kind.scope == Scope::Job {
            kind.scope = Scope::Lock;
        }
        self.verifier.report.add(Problem {
            kind,
            place: self.tag.clone(),
            subject: display_subject(kind.scope, &subject),
            detail: detail.escape_ascii().to_string(),
            outcome: status,
        });
    }

    async fn mend(&mut self, findings: &[Finding]) -> Result<MendResult, Failure> {
        let mut mends = MendResult::default();
        let subjects = |of: &[Scope]| -> BTreeSet<Bytes> {
            let wanted = findings.iter().filter(|finding| of.contains(&finding.kind.scope));
            wanted.map(|finding| finding.subject.clone()).collect()
        };
        let unlisted = subjects(&[Scope::Config]);
        if !unlisted.is_empty() {
            let priorities = unlisted.iter().filter_map(priority_of).collect();
            self.add_priorities(&priorities).await?;
            let name = |subject| ("priority_unlisted", subject);
            mends.done.extend(unlisted.into_iter().map(name));
        }
        let number = self.number_for(findings).await?;
        if number.is_some() || !subjects(&[Scope::State]).is_empty() {
            let number = Writer::default().u64(number.unwrap_or(0)).take();
            self.mend_with("mend_state", &[number], &mut mends).await?;
        }
        let verb = if self.holds_locks { "mend_locks" } else { "mend_jobs" };
        self.mend_each(verb, subjects(&[Scope::Job, Scope::Lock]), &mut mends).await?;
        self.mend_each("mend_keys", subjects(&[Scope::Key]), &mut mends).await?;
        self.mend_each("mend_schedules", subjects(&[Scope::Schedule]), &mut mends).await?;
        self.mend_each("mend_groups", subjects(&[Scope::Group]), &mut mends).await?;
        Ok(mends)
    }

    async fn mend_each(
        &mut self,
        verb: &str,
        subjects: BTreeSet<Bytes>,
        mends: &mut MendResult,
    ) -> Result<(), Failure> {
        let subjects: Vec<Bytes> = subjects.into_iter().collect();
        let at_once = portions::at_once(self.record_bytes, MENDED_AT_ONCE);
        for chunk in subjects.chunks(usize::try_from(at_once).unwrap_or(1)) {
            let needs = self.mend_with(verb, chunk, mends).await?;
            if needs.is_empty() {
                continue;
            }
            let priorities = needs.iter().filter_map(|(_, priority)| priority_of(priority));
            self.add_priorities(&priorities.collect()).await?;
            let again: Vec<Bytes> = needs.into_iter().map(|(id, _)| id).collect();
            let needs = self.mend_with(verb, &again, mends).await?;
            mends.left.extend(needs.into_iter().map(|(id, _)| id));
        }
        Ok(())
    }

    /// Mends. Returns the ids whose priority must be configured first, each with that priority.
    async fn mend_with(
        &mut self,
        verb: &str,
        subjects: &[Bytes],
        mends: &mut MendResult,
    ) -> Result<Vec<(Bytes, Bytes)>, Failure> {
        let mut reply = self.call(verb, subjects).await?;
        let mut needs = Vec::new();
        while let Some((name, subject, detail)) = reply.triple()? {
            if name == "needs" {
                needs.push((subject, detail));
                continue;
            }
            let kind = Kind::by_name(&name);
            let kind = kind.ok_or_else(|| crate::wire::malformed("unknown name of a mend"))?;
            mends.done.insert((kind.name, subject));
            self.mends += 1;
        }
        Ok(needs)
    }
}

/// Random, as servers choose it: a failover may lose the last versions. Exact as a Lua number.
fn next_version() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(0) % (1 << 52)) | 1
}

fn priority_of(text: &Bytes) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A script that fails on one partition is a problem; the other partitions are still checked.
pub(super) fn note_failure(
    result: Result<(), Failure>,
    place: &str,
    verifier: &mut Verifier,
) -> Result<(), Error> {
    match result {
        Ok(()) => Ok(()),
        Err(Failure::Fatal(error)) => Err(error),
        Err(Failure::Script(detail)) => {
            verifier.report.add(Problem {
                kind: super::kind::SCRIPT_FAILED,
                place: place.to_owned(),
                subject: String::new(),
                detail,
                outcome: ProblemStatus::Wrong,
            });
            Ok(())
        }
    }
}
