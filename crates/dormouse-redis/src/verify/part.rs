//! One partition on its way through the check: what is known of it, and how it is asked and mended.

use std::collections::{BTreeSet, HashSet};

use bytes::Bytes;
use dormouse_core::error::Error;

use super::Work;
use super::ask::{Answer, Failure, Finding, number};
use super::kind::{Kind, Of};
use super::portions;
use super::report::{Outcome, Problem, written};
use crate::cluster::slot_of;
use crate::keys;
use crate::wire::Writer;
use crate::wire::config::Config;

/// Jobs that one script mends.
const MENDED_AT_ONCE: u64 = 16;
/// Records may be as large as a job can be: the first page is small.
const FIRST_GUESS: u64 = 32 << 10;

/// A partition.
pub(super) struct Part<'a> {
    pub(super) work: &'a mut Work,
    pub(super) tag: String,
    shard: Bytes,
    pub(super) holds_locks: bool,
    /// As Redis has it: it may be no number.
    version: Bytes,
    pub(super) config: Config,
    pub(super) config_is_bad: bool,
    /// Priorities that had a zset when keys were listed.
    found: BTreeSet<u32>,
    told: HashSet<(&'static str, Bytes)>,
    /// Mends so far.
    pub(super) mends: u64,
    /// The books know of every number that was given.
    pub(super) number_is_sure: bool,
    /// Bytes of a record on average, as far as records were read.
    pub(super) record_bytes: u64,
}

/// What came of mending.
#[derive(Default)]
struct Mends {
    done: HashSet<(&'static str, Bytes)>,
    /// Could not be mended.
    left: HashSet<Bytes>,
}

impl<'a> Part<'a> {
    /// A partition of a topic.
    pub(super) fn new(work: &'a mut Work, tag: String, shard: u32, found: BTreeSet<u32>) -> Self {
        let [_, high, mid, low] = shard.to_be_bytes();
        Part {
            work,
            tag,
            shard: Bytes::copy_from_slice(&[high, mid, low]),
            holds_locks: false,
            version: Bytes::from_static(b"0"),
            config: Config::default(),
            config_is_bad: false,
            found,
            told: HashSet::new(),
            mends: 0,
            number_is_sure: false,
            record_bytes: FIRST_GUESS,
        }
    }

    /// A partition of locks.
    pub(super) fn of_locks(work: &'a mut Work, tag: String) -> Self {
        Part { holds_locks: true, ..Part::new(work, tag, 0, BTreeSet::new()) }
    }

    /// Whether anything was wrong so far.
    pub(super) fn has_told(&self) -> bool {
        !self.told.is_empty()
    }

    /// In use, or found without being so; ascending.
    pub(super) fn priorities(&self) -> BTreeSet<u32> {
        self.config.priorities.iter().chain(&self.found).copied().collect()
    }

    /// Found, but not in the configuration.
    pub(super) fn unlisted(&self) -> Bytes {
        let listed = &self.config.priorities;
        packed(self.found.iter().filter(|priority| !listed.contains(priority)))
    }

    /// Runs a verb.
    pub(super) async fn ask(&mut self, verb: &str, args: &[Bytes]) -> Result<Answer, Failure> {
        self.ask_with(verb, |_| args.to_vec()).await
    }

    /// Runs a verb whose arguments depend on the configuration, which may change at any time.
    pub(super) async fn ask_with(
        &mut self,
        verb: &str,
        args: impl Fn(&Self) -> Vec<Bytes>,
    ) -> Result<Answer, Failure> {
        loop {
            let args = args(self);
            let (keys, args) = (self.keys(), self.args(verb, args));
            let tools = &self.work.tools;
            let slot = slot_of(self.tag.as_bytes());
            let mut answer = tools.run(slot, &tools.partition, keys, args).await?;
            if answer.text()? == "done" {
                return Ok(answer);
            }
            let (version, text) = (answer.text()?, answer.text()?);
            self.learn(version, &text);
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let mut all = keys::fixed(&self.tag).to_vec();
        all.extend(self.priorities().iter().map(|&priority| keys::priority(&self.tag, priority)));
        all.push(keys::key(&self.tag, "x"));
        all
    }

    /// As lib.lua wants them; no server asks, so there is no request to be known again.
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
            Bytes::copy_from_slice(verb.as_bytes()),
            number(args.len() as u64),
        ];
        all.extend(args);
        all
    }

    /// The configuration is this now. One that makes no sense is read as far as it does.
    fn learn(&mut self, version: Bytes, text: &[u8]) {
        let parsed = std::str::from_utf8(&version).ok().and_then(|text| text.parse::<u64>().ok());
        let config = Config::decode(parsed.unwrap_or(0), text);
        self.config_is_bad = parsed.is_none() || config.is_err();
        self.config = config.unwrap_or_default();
        let priorities = &mut self.config.priorities;
        if !priorities.is_sorted_by(|a, b| a < b) {
            self.config_is_bad = true;
            priorities.sort_unstable();
            priorities.dedup();
        }
        self.version = version;
    }

    /// Writes the configuration with these priorities besides its own.
    pub(super) async fn grow(&mut self, priorities: &BTreeSet<u32>) -> Result<(), Failure> {
        let with = |config: &Config| {
            let mut config = config.clone();
            config.priorities.extend(priorities);
            config.priorities.sort_unstable();
            config.priorities.dedup();
            config.encode()
        };
        let version = number(next_version());
        self.ask_with("mend_config", |part| vec![version.clone(), with(&part.config)]).await?;
        let text = with(&self.config);
        self.mends += 1;
        self.learn(version, &text);
        Ok(())
    }

    /// Tells what was found, and mends it if that is wanted.
    pub(super) async fn heed(&mut self, findings: Vec<Finding>) -> Result<(), Failure> {
        let mends = self.work.options.mend;
        let came = if mends { self.mend(&findings).await? } else { Mends::default() };
        for finding in findings {
            let outcome = if !mends || came.left.contains(&finding.subject) {
                Outcome::Wrong
            } else if came.done.contains(&(finding.kind.name, finding.subject.clone())) {
                Outcome::Mended
            } else {
                Outcome::Gone
            };
            self.tell(finding, outcome);
        }
        Ok(())
    }

    /// Tells of a problem; pages may show the same thing twice.
    pub(super) fn tell(&mut self, finding: Finding, outcome: Outcome) {
        let Finding { mut kind, subject, detail } = finding;
        let whose = if kind.is_once() { Bytes::new() } else { subject.clone() };
        if !self.told.insert((kind.name, whose)) {
            return;
        }
        if self.holds_locks && kind.of == Of::Job {
            kind.of = Of::Lock;
        }
        self.work.report.add(Problem {
            kind,
            place: self.tag.clone(),
            subject: written(kind.of, &subject),
            detail: detail.escape_ascii().to_string(),
            outcome,
        });
    }

    async fn mend(&mut self, findings: &[Finding]) -> Result<Mends, Failure> {
        let mut mends = Mends::default();
        let subjects = |of: &[Of]| -> BTreeSet<Bytes> {
            let wanted = findings.iter().filter(|finding| of.contains(&finding.kind.of));
            wanted.map(|finding| finding.subject.clone()).collect()
        };
        let unlisted = subjects(&[Of::Config]);
        if !unlisted.is_empty() {
            let priorities = unlisted.iter().filter_map(priority_of).collect();
            self.grow(&priorities).await?;
            let name = |subject| ("priority_unlisted", subject);
            mends.done.extend(unlisted.into_iter().map(name));
        }
        let number = self.number_for(findings).await?;
        if number.is_some() || !subjects(&[Of::State]).is_empty() {
            let number = Writer::default().u64(number.unwrap_or(0)).take();
            self.mend_with("mend_state", &[number], &mut mends).await?;
        }
        let verb = if self.holds_locks { "mend_locks" } else { "mend_jobs" };
        self.mend_each(verb, subjects(&[Of::Job, Of::Lock]), &mut mends).await?;
        self.mend_each("mend_keys", subjects(&[Of::Key]), &mut mends).await?;
        Ok(mends)
    }

    async fn mend_each(
        &mut self,
        verb: &str,
        subjects: BTreeSet<Bytes>,
        mends: &mut Mends,
    ) -> Result<(), Failure> {
        let subjects: Vec<Bytes> = subjects.into_iter().collect();
        let at_once = portions::at_once(self.record_bytes, MENDED_AT_ONCE);
        for chunk in subjects.chunks(usize::try_from(at_once).unwrap_or(1)) {
            let needs = self.mend_with(verb, chunk, mends).await?;
            if needs.is_empty() {
                continue;
            }
            let priorities = needs.iter().filter_map(|(_, priority)| priority_of(priority));
            self.grow(&priorities.collect()).await?;
            let again: Vec<Bytes> = needs.into_iter().map(|(id, _)| id).collect();
            let needs = self.mend_with(verb, &again, mends).await?;
            mends.left.extend(needs.into_iter().map(|(id, _)| id));
        }
        Ok(())
    }

    /// Mends; gives the ids that need a priority first, each with that.
    async fn mend_with(
        &mut self,
        verb: &str,
        subjects: &[Bytes],
        mends: &mut Mends,
    ) -> Result<Vec<(Bytes, Bytes)>, Failure> {
        let mut answer = self.ask(verb, subjects).await?;
        let mut needs = Vec::new();
        while let Some((name, subject, detail)) = answer.triple()? {
            if name == "needs" {
                needs.push((subject, detail));
                continue;
            }
            let kind = Kind::named(&name);
            let kind = kind.ok_or_else(|| crate::wire::malformed("a mend has no known name"))?;
            mends.done.insert((kind.name, subject));
            self.mends += 1;
        }
        Ok(needs)
    }
}

/// As servers choose it: at random, since a failover may take the last ones back; exact in a
/// script.
fn next_version() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(0) % (1 << 52)) | 1
}

fn priority_of(text: &Bytes) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn packed<'a>(priorities: impl IntoIterator<Item = &'a u32>) -> Bytes {
    let mut to = Writer::default();
    for &priority in priorities {
        to.u32(priority);
    }
    to.take()
}

/// A script failed on one partition: that is one problem more, and the others are still checked.
pub(super) fn survive(
    outcome: Result<(), Failure>,
    place: &str,
    work: &mut Work,
) -> Result<(), Error> {
    match outcome {
        Ok(()) => Ok(()),
        Err(Failure::Fatal(error)) => Err(error),
        Err(Failure::Script(detail)) => {
            work.report.add(Problem {
                kind: super::kind::SCRIPT_FAILED,
                place: place.to_owned(),
                subject: String::new(),
                detail,
                outcome: Outcome::Wrong,
            });
            Ok(())
        }
    }
}
