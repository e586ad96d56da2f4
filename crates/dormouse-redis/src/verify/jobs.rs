//! Checks each job of a partition, and the sum of their bytes.
//!
//! Jobs are found by the zsets they are in. Records are listed only if there are more of them than
//! ids in zsets, or if there are problems: listing a hash reads all of it.
//!
//! A sum over many pages can be compared with the counter only if no job was added or removed
//! between the first page and the last. The header shows that: every such change counts in it. The
//! difference between sum and counter does not depend on what servers do, so it is reported when
//! two passes agree on it.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::call::{Failure, Finding};
use super::checker::Checker;
use super::kind::BYTES_WRONG;
use super::portions;
use super::report::ProblemStatus;
use crate::wire::{Reader, Writer, number};

/// Ids in a page of a zset.
const PAGE: u64 = 500;
/// Zset lookups for the records of one page of a hash.
const LOOKUPS: u64 = 400;
/// Passes over a partition in which jobs are added and removed.
const BUSY_PASSES: u32 = 2;

/// The partition at one instant.
struct Snapshot {
    header: Bytes,
    jobs: u64,
    /// Ids in all zsets.
    placed: u64,
}

/// One pass over all jobs.
struct Pass {
    jobs: u64,
    bytes: u64,
    first: Snapshot,
    last: Snapshot,
    mends: u64,
}

impl Pass {
    /// By how much the counter is too low; `None` = unknown, as jobs were added or removed.
    fn drift(&self) -> Option<i64> {
        let counters = |snapshot: &Snapshot| Counters::read(&snapshot.header);
        let (first, last) = (counters(&self.first), counters(&self.last));
        let is_quiet = first == last && self.jobs == self.last.jobs && self.mends == 0;
        is_quiet.then(|| i64::try_from(self.bytes).unwrap_or(i64::MAX) - last.bytes)
    }
}

/// The counters that change when a job is added or removed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counters {
    puts: i64,
    acks: i64,
    cancels: i64,
    bytes: i64,
}

impl Counters {
    /// Nine of fifteen doubles, see lib.lua.
    fn read(header: &[u8]) -> Counters {
        let mut from = Reader::new(header);
        let mut all = [0; 15];
        for counter in &mut all {
            // Whole numbers below 2^53.
            *counter = f64::from_bits(from.u64().unwrap_or_default()) as i64;
        }
        let [.., puts, _, acks, _, _, _, _, cancels, bytes, _deadline] = all;
        Counters { puts, acks, cancels, bytes }
    }
}

impl Checker<'_> {
    /// Checks every job, and the sum of their bytes.
    pub(super) async fn check_jobs(&mut self) -> Result<(), Failure> {
        let (mut busy, mut known) = (0, None);
        while busy < BUSY_PASSES {
            let pass = self.pass().await?;
            if pass.last.placed != pass.last.jobs || self.has_problems() {
                self.check_records().await?;
            }
            match pass.drift() {
                Some(0) => return Ok(()),
                Some(drift) if known == Some(drift) => return self.bytes_are_wrong(&pass).await,
                Some(drift) => known = Some(drift),
                None => busy += u32::from(pass.mends == 0),
            }
        }
        let text =
            format!("{}: the sum of bytes: jobs were added and removed all the time", self.tag);
        self.verifier.report.unchecked.push(text);
        Ok(())
    }

    async fn snapshot(&mut self) -> Result<Snapshot, Failure> {
        let mut reply = self.call("tally", &[]).await?;
        let (header, jobs, placed) = (reply.text()?, reply.number()?, reply.number()?);
        Ok(Snapshot { header, jobs, placed })
    }

    /// One pass over all zsets.
    async fn pass(&mut self) -> Result<Pass, Failure> {
        let (first, last) = (self.snapshot().await?, self.snapshot().await?);
        let mends = self.mends;
        let mut pass = Pass { jobs: 0, bytes: 0, first, last, mends: 0 };
        self.check_zset(Bytes::from_static(b"d"), &mut pass).await?;
        let mut done = BTreeSet::new();
        // Servers may add priorities meanwhile.
        while let Some(priority) = self.priorities().difference(&done).next().copied() {
            self.check_zset(number(u64::from(priority)), &mut pass).await?;
            done.insert(priority);
        }
        pass.last = self.snapshot().await?;
        pass.mends = self.mends - mends;
        Ok(pass)
    }

    /// Checks that every id has a record, and checks every job.
    async fn check_zset(&mut self, zset: Bytes, pass: &mut Pass) -> Result<(), Failure> {
        let mut cursor = Bytes::from_static(b"0");
        loop {
            let mut reply = self.call("places", &[zset.clone(), cursor, number(PAGE)]).await?;
            cursor = reply.text()?;
            let jobs = portions::read(&mut reply)?;
            self.handle(reply.findings()?).await?;
            let bytes: u64 = jobs.iter().map(|(_, bytes)| bytes).sum();
            self.record_bytes = bytes.checked_div(jobs.len() as u64).unwrap_or(self.record_bytes);
            pass.jobs += jobs.len() as u64;
            for mut ids in portions::portions(&jobs) {
                ids.insert(0, zset.clone());
                let mut reply = self.call("jobs", &ids).await?;
                pass.bytes += reply.number()?;
                self.handle(reply.findings()?).await?;
            }
            if cursor == "0" {
                return Ok(());
            }
        }
    }

    /// Checks that every record is in a zset.
    async fn check_records(&mut self) -> Result<(), Failure> {
        let most = LOOKUPS / (self.priorities().len() as u64 + 1);
        let count = portions::at_once(self.record_bytes, most.max(1));
        self.page("strays", count).await
    }

    async fn bytes_are_wrong(&mut self, pass: &Pass) -> Result<(), Failure> {
        let counted = Counters::read(&pass.last.header).bytes;
        let mut status = ProblemStatus::Wrong;
        if self.verifier.options.mend {
            let sum = Writer::default().u64(pass.bytes).take();
            let mut reply = self.call("mend_bytes", &[pass.last.header.clone(), sum]).await?;
            if !reply.findings()?.is_empty() {
                status = ProblemStatus::Mended;
            }
        }
        let detail = Bytes::from(format!("counted {counted}, jobs have {}", pass.bytes));
        self.report(Finding { kind: BYTES_WRONG, subject: Bytes::new(), detail }, status);
        Ok(())
    }
}
