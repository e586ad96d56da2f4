//! The jobs of a partition, each by itself, and the sum of their bytes.
//!
//! Jobs are found by the zsets they are in. Records are listed only if that leaves some over, or if
//! anything is wrong: to list a hash is to read it all.
//!
//! A sum over many pages can be compared with the counter only if no job came or went between the
//! first page and the last. The counters tell: whatever comes or goes changes one of them. What the
//! sum is off by stays the same whatever servers do, so it counts when two passes agree on it.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::ask::{Failure, Finding, number};
use super::kind::BYTES_WRONG;
use super::part::Part;
use super::portions;
use super::report::Outcome;
use crate::wire::{Reader, Writer};

/// Ids of a page of a zset.
const PAGE: u64 = 500;
/// Zsets that are looked at for records of one page of a hash.
const LOOKUPS: u64 = 400;
/// Passes over a partition in which jobs come and go.
const BUSY_PASSES: u32 = 2;

/// The books at one instant.
struct Tally {
    books: Bytes,
    jobs: u64,
    /// Ids in all zsets.
    placed: u64,
}

/// One pass over all jobs.
struct Pass {
    jobs: u64,
    bytes: u64,
    first: Tally,
    last: Tally,
    mends: u64,
}

impl Pass {
    /// By how much the counter is too low; `None` = jobs came or went, so nobody knows.
    fn drift(&self) -> Option<i64> {
        let counters = |tally: &Tally| Counters::read(&tally.books);
        let (first, last) = (counters(&self.first), counters(&self.last));
        let is_quiet = first == last && self.jobs == self.last.jobs && self.mends == 0;
        is_quiet.then(|| i64::try_from(self.bytes).unwrap_or(i64::MAX) - last.bytes)
    }
}

/// Those that change when a job comes or goes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counters {
    puts: i64,
    acks: i64,
    cancels: i64,
    bytes: i64,
}

impl Counters {
    /// The last nine of fourteen doubles, see lib.lua.
    fn read(books: &[u8]) -> Counters {
        let mut from = Reader::new(books);
        let mut all = [0; 14];
        for counter in &mut all {
            // Whole numbers below 2^53.
            *counter = f64::from_bits(from.u64().unwrap_or_default()) as i64;
        }
        let [.., puts, _, acks, _, _, _, _, cancels, bytes] = all;
        Counters { puts, acks, cancels, bytes }
    }
}

impl Part<'_> {
    /// Checks every job, and the sum of their bytes.
    pub(super) async fn check_jobs(&mut self) -> Result<(), Failure> {
        let (mut busy, mut known) = (0, None);
        while busy < BUSY_PASSES {
            let pass = self.pass().await?;
            if pass.last.placed != pass.last.jobs || self.has_told() {
                self.check_records().await?;
            }
            match pass.drift() {
                Some(0) => return Ok(()),
                Some(drift) if known == Some(drift) => return self.bytes_are_wrong(&pass).await,
                Some(drift) => known = Some(drift),
                None => busy += u32::from(pass.mends == 0),
            }
        }
        let text = format!("{}: the count of bytes: jobs came and went all the time", self.tag);
        self.work.report.unchecked.push(text);
        Ok(())
    }

    async fn tally(&mut self) -> Result<Tally, Failure> {
        let mut answer = self.ask("tally", &[]).await?;
        let (books, jobs, placed) = (answer.text()?, answer.number()?, answer.number()?);
        Ok(Tally { books, jobs, placed })
    }

    /// Once over all zsets.
    async fn pass(&mut self) -> Result<Pass, Failure> {
        let (first, last) = (self.tally().await?, self.tally().await?);
        let mends = self.mends;
        let mut pass = Pass { jobs: 0, bytes: 0, first, last, mends: 0 };
        self.check_zset(Bytes::from_static(b"d"), &mut pass).await?;
        let mut done = BTreeSet::new();
        // Servers may take priorities into use meanwhile.
        while let Some(priority) = self.priorities().difference(&done).next().copied() {
            self.check_zset(number(u64::from(priority)), &mut pass).await?;
            done.insert(priority);
        }
        pass.last = self.tally().await?;
        pass.mends = self.mends - mends;
        Ok(pass)
    }

    /// Every id in it has a record, and every job is as it should be.
    async fn check_zset(&mut self, zset: Bytes, pass: &mut Pass) -> Result<(), Failure> {
        let mut cursor = Bytes::from_static(b"0");
        loop {
            let mut answer = self.ask("places", &[zset.clone(), cursor, number(PAGE)]).await?;
            cursor = answer.text()?;
            let jobs = portions::read(&mut answer)?;
            let findings = answer.findings()?;
            self.heed(findings).await?;
            let bytes: u64 = jobs.iter().map(|(_, bytes)| bytes).sum();
            self.record_bytes = bytes.checked_div(jobs.len() as u64).unwrap_or(self.record_bytes);
            pass.jobs += jobs.len() as u64;
            for mut ids in portions::portions(&jobs) {
                ids.insert(0, zset.clone());
                let mut answer = self.ask("jobs", &ids).await?;
                pass.bytes += answer.number()?;
                let findings = answer.findings()?;
                self.heed(findings).await?;
            }
            if cursor == "0" {
                return Ok(());
            }
        }
    }

    /// Every record is in a zset.
    async fn check_records(&mut self) -> Result<(), Failure> {
        let most = LOOKUPS / (self.priorities().len() as u64 + 1);
        let count = portions::at_once(self.record_bytes, most.max(1));
        self.page("strays", count).await
    }

    async fn bytes_are_wrong(&mut self, pass: &Pass) -> Result<(), Failure> {
        let counted = Counters::read(&pass.last.books).bytes;
        let mut outcome = Outcome::Wrong;
        if self.work.options.mend {
            let sum = Writer::default().u64(pass.bytes).take();
            let mut answer = self.ask("mend_bytes", &[pass.last.books.clone(), sum]).await?;
            if !answer.findings()?.is_empty() {
                outcome = Outcome::Mended;
            }
        }
        let detail = Bytes::from(format!("counted {counted}, jobs have {}", pass.bytes));
        self.tell(Finding { kind: BYTES_WRONG, subject: Bytes::new(), detail }, outcome);
        Ok(())
    }
}
